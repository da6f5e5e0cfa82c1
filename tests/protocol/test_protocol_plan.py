"""From the document to the plan: every field, the prose, coverage, and the shipped protocols."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from planted_faults import SOUND
from planted_patterns import bta, planned
from ruamel.yaml import YAML

from eop.agents.products import REAL
from eop.agents.products.scripted import SCRIPTED
from eop.core.files import dumps
from eop.core.schema import problems
from eop.protocol.compiler import check, load
from eop.protocol.coverage import coverage
from eop.protocol.diagnostics import ProtocolErrors, render
from eop.protocol.expressions import FRUITLESS
from eop.protocol.held import HELD
from eop.protocol.markers import FRONT, KINDS
from eop.protocol.model import Budget, FanOut, Join, Loop, OnReject, Output, Plan, Review, Workers
from eop.protocol.products import PRODUCTS, VENDORS
from eop.protocol.shapes import STEP_NAME
from eop.runtime.node import STEP_NAME as RUNTIME_STEP_NAME

if TYPE_CHECKING:
    from collections.abc import Callable

REPOSITORY = Path(__file__).parents[2]
SHIPPED = sorted((REPOSITORY / "config" / "protocols").glob("*.eop.md"))
STEPS = [
    *("investigate_code", "investigate_data", "confirm_investigation", "baseline"),
    *("propose", "screen", "approve_proposals", "implement", "preflight", "train", "evaluate"),
    *("analyze", "promote", "publish", "summarize", "evolve", "rank", "confirm_evolution", "pick"),
]


@pytest.fixture
def plan_of(project: Path) -> Callable[[str], Plan]:
    def build(text: str) -> Plan:
        path = project / "plan.eop.md"
        path.write_text(text)
        return load(path, root=project)

    return build


@pytest.mark.parametrize("gpus", range(1, 9))
def test_a_phase_that_trains_may_have_all_gpus_of_a_machine(
    plan_of: Callable[[str], Plan], gpus: int
) -> None:
    text = SOUND
    for function in ("baseline", "train"):
        asks = f"function: {function}\nresources: {{gpus: {gpus}}}"
        text = text.replace(f"function: {function}\n", f"{asks}\n")
    plan = plan_of(text)
    assert [plan.phase(name).resources.gpus for name in ("base", "train")] == [gpus, gpus]


def test_one_gpu_and_none_are_one_process(plan_of: Callable[[str], Plan]) -> None:
    text = SOUND.replace("function: train\n", "function: train\nresources: {gpus: 1}\n")
    assert plan_of(text).phase("base").resources.gpus == 0


def test_the_plan_says_what_the_document_says(plan_of: Callable[[str], Plan]) -> None:
    plan = plan_of(SOUND)
    assert (plan.name, plan.version, plan.target) == ("sound", "0.1.0", "hstu")
    assert (plan.title, plan.source) == ("A sound protocol", "plan.eop.md")
    assert plan.variables == {"patience": {"type": "integer", "default": 2}}
    assert plan.budget == Budget(actions=1000, wall_s=36000)
    assert plan.loop == Loop(
        "again", plan.loop.line, ("confirm",), "propose", 3, f"{FRUITLESS} < patience"
    )
    assert plan.facts == {
        "decision.champion": "text",
        "decision.parent": "text",
        "preflight.passed": "boolean",
    }
    build = plan.phase("build")
    assert (build.branch, build.fan_out) == ("idea", FanOut("idea", "proposals", 4))
    assert (build.pattern, build.check, build.review) == ("dual", "preflight", Review("minor", 2))
    assert build.budget == Budget(actions=100, wall_s=1800, attempts=2)
    assert build.tools == ("read", "edit")
    assert build.outputs == (
        Output("patch", "patch.diff", patch=True),
        Output("review", "review.json", "review"),
    )
    assert plan.phase("look").nodes == {"reader": "scripted", "writer": "scripted"}
    assert plan.phase("train").branch == "idea"
    assert plan.phase("train").arguments == {"seeds": [1, 2]}
    assert plan.phase("analyze").on_branch == ("completed", "failed")
    assert plan.phase("promote").join == Join("analyze", 1)
    assert plan.gate("agree").on_reject == OnReject("look", 2)
    assert plan.gate("confirm").on_reject == OnReject(None, 0)
    assert plan.body == set(plan.steps) - {"look", "agree", "base"}


@pytest.mark.parametrize(
    ("nodes", "bounds", "workers"),
    [
        ("{breakdown: scripted, worker: qwen-code}", "{max: 1}", Workers(("qwen-code",), 1, 1, 1)),
        (
            "{breakdown: scripted, worker: {product: [qwen-code, scripted], budget: {actions: 9}}}",
            "{max: 6, concurrency: 3, at_least: 2}",
            Workers(("qwen-code", "scripted"), 6, 3, 2),
        ),
    ],
)
def test_workers_are_read_with_their_bounds(
    plan_of: Callable[[str], Plan], nodes: str, bounds: str, workers: Workers
) -> None:
    linear = "pattern: linear\nnodes: {proposer: scripted}\n"
    plan = plan_of(SOUND.replace(linear, bta(nodes, f"workers: {bounds}\n")))
    propose = plan.phase("propose")
    assert (propose.nodes, propose.workers) == ({"breakdown": "scripted"}, workers)
    assert propose.cast == (
        ("breakdown", "scripted"),
        *(("worker", product) for product in workers.products),
    )
    assert Plan.from_json(json.loads(json.dumps(plan.to_json()))) == plan


def test_who_is_left_out_of_a_plan_merge_is_stood_in_for(plan_of: Callable[[str], Plan]) -> None:
    dual = SOUND[SOUND.index("pattern: dual") : SOUND.index("check: preflight")]
    nodes = "planner: scripted, plan_reviewer: scripted-peer"
    for pattern, more in (
        ("plan_then_implement", {}),
        ("plan_merge", {"co_planner": "scripted-peer", "merger": "scripted"}),
    ):
        build = plan_of(SOUND.replace(dual, planned(nodes, pattern))).phase("build")
        assert build.review == Review("minor", 2, "other")
        assert build.nodes == {
            "planner": "scripted",
            "plan_reviewer": "scripted-peer",
            "implementer": "scripted",
            "reviewer": "scripted-peer",
            "fixer": "scripted",
            **more,
        }


def test_products_and_the_language_agree_on_vendors() -> None:
    kinds = {**REAL, **SCRIPTED}
    assert {name: kind.vendor for name, kind in kinds.items()} == dict(VENDORS)
    assert set(VENDORS) == set(PRODUCTS)


def test_positions_are_those_of_the_fence(plan_of: Callable[[str], Plan]) -> None:
    lines = SOUND.split("\n")
    for step in plan_of(SOUND).steps.values():
        assert lines[step.line - 1] == "```eop"
        assert lines[step.line].endswith(f": {step.id}")


PROSE = """\
Told: first.

~~~python
# not a heading
~~~

- Told: last.
"""


@pytest.mark.parametrize("after", ["\n## Next\n\nUntold.\n", "\nNext\n----\n\nUntold.\n", ""])
def test_the_body_is_the_prose_up_to_the_next_heading_or_block(
    plan_of: Callable[[str], Plan], after: str
) -> None:
    plan = plan_of(SOUND.replace("Say what you see.\n", PROSE + after))
    assert plan.phase("look").body == PROSE.strip()
    assert plan.phase("look").title == "Look"


def test_a_gates_question_is_its_prose(plan_of: Callable[[str], Plan]) -> None:
    old = "on_reject: {goto: look, max: 2}\n```\n"
    plan = plan_of(SOUND.replace(old, old + "\nIs it right?\n"))
    assert plan.gate("agree").question == "Is it right?"
    assert plan.gate("approve").question == ""


def test_moving_text_keeps_the_digest_and_meaning_changes_it(
    plan_of: Callable[[str], Plan],
) -> None:
    plan = plan_of(SOUND)
    moved = plan_of(SOUND.replace("# A sound protocol\n", "# A sound protocol\n\nFor people.\n"))
    assert moved != plan
    assert moved.digest == plan.digest
    told = plan_of(SOUND.replace("Say what you see.", "Say what you hear."))
    assert told.digest != plan.digest
    assert plan_of(SOUND.replace("rounds: 2", "rounds: 3")).digest != plan.digest


def test_step_names_are_those_that_the_runtime_can_tell_apart() -> None:
    assert STEP_NAME.pattern == RUNTIME_STEP_NAME.pattern


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_shipped_protocols_are_sound(path: Path) -> None:
    assert render(check(path, root=REPOSITORY)) == ""
    plan = load(path, root=REPOSITORY)
    assert Plan.from_json(plan.to_json()) == plan
    assert plan.source == f"config/protocols/{path.name}"


def test_a_plan_holds_the_text_that_agents_are_told(plan_of: Callable[[str], Plan]) -> None:
    assert plan_of(SOUND).document == ""
    text = SOUND.replace("hstu\ncontext: body", "hstu\ncontext: full")
    plan = plan_of(text)
    assert plan.document == text
    assert plan.phase("look").context == "body"
    assert plan.phase("propose").context == "full"
    assert plan_of(text.replace("sound protocol\n", "sound one\n")).digest != plan.digest


def test_the_research_protocols_have_the_same_steps() -> None:
    for name in ("demo", "hstu-evolve"):
        plan = load(REPOSITORY / "config" / "protocols" / f"{name}.eop.md", root=REPOSITORY)
        more = [] if name == "demo" else ["contradictions", "conclude", "reconcile"]
        at = STEPS.index("evolve")
        assert list(plan.steps) == [*STEPS[:at], *more, *STEPS[at:]]
        assert plan.name == name


def test_coverage_names_every_marker_with_its_line(project: Path) -> None:
    path = project / "covered.eop.md"
    path.write_text(SOUND)
    rows = coverage(path, project)
    lines = SOUND.split("\n")
    assert all(lines[row.line - 1].startswith(f"{row.marker}:") for row in rows)
    assert {row.marker for row in rows if row.step is None} == set(FRONT)
    markers = {row.marker for row in rows if row.step is not None}
    assert markers == {key for fields in KINDS.values() for key in fields} - {"until", "workers"}
    held = {(row.step, row.marker): row.held for row in rows}
    assert held["build", "tools"] == "static + runtime"
    assert held[None, "version"] == "static"


def test_a_marker_that_nothing_holds_is_an_error(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    less = {marker: by for marker, by in HELD.items() if marker != "tools"}
    monkeypatch.setattr("eop.protocol.held.HELD", less)
    path = project / "unheld.eop.md"
    path.write_text(SOUND)
    found = check(path, root=project)
    assert {one.code for one in found} == {"EOP119"}
    assert all(one.source == "tools: [read]" or "edit" in str(one.source) for one in found)
    with pytest.raises(ProtocolErrors, match="nothing holds the marker 'tools'"):
        coverage(path, project)


def test_nothing_is_covered_in_a_faulty_protocol(project: Path) -> None:
    path = project / "uncovered.eop.md"
    path.write_text(SOUND.replace("eop: 1", "eop: 2"))
    with pytest.raises(ProtocolErrors):
        coverage(path, project)


def test_every_marker_of_the_language_is_held() -> None:
    keys = {key for fields in KINDS.values() for key in fields}
    keys |= {"front.budget" if key == "budget" else key for key in FRONT}
    assert keys == set(HELD)


PROPOSAL = {
    "id": "genre-mix",
    "title": "Mix genres",
    "hypothesis": "Genres say more.",
    "change": "Add an embedding.",
    "falsifier": "No gain on validation.",
    "risks": ["Only positives carry it."],
}
FINDING = {
    "id": "F1",
    "severity": "major",
    "claim": "The feature leaks.",
    "evidence": "Only positives carry it.",
    "status": "open",
    "family": "tensor_routing",
    "suggested_check": "score an item both ways",
}
INVARIANT = {"id": "I5", "title": "one score", "status": "passed", "detail": "", "measured": {}}
CANDIDATE = {
    "proposal": "genre-mix",
    "entry": "run-01-p01",
    "outcome": "failed",
    "delta": None,
    "interval": None,
    "promoted": False,
    "reason": "not measured: failed",
    "p": None,
    "p_adjusted": None,
    "band": None,
    "detectable": None,
}
DECISION = {
    "champion": "base",
    "parent": "base",
    "rule": {"alpha": 0.05, "seeds": 2, "family": "holm", "tests": 0, "power": 0.8},
    "noise": None,
    "candidates": [CANDIDATE],
}


@pytest.mark.parametrize(
    ("schema", "value", "accepted"),
    [
        ("proposals", [PROPOSAL], True),
        ("proposals", [], False),
        ("proposals", [PROPOSAL | {"id": "../evil"}], False),
        ("proposals", [PROPOSAL | {"id": "p"}], False),
        ("proposals", [PROPOSAL | {"extra": 1}], False),
        ("findings", {"findings": [FINDING], "summary": "One leak."}, True),
        ("findings", {"findings": [FINDING | {"line": 3}], "summary": "Where?"}, False),
        ("findings", {"findings": [FINDING | {"family": "leak"}], "summary": "?"}, False),
        ("findings", {"findings": [], "summary": "Fine.", "verdict": "approved"}, False),
        ("preflight", {"schema": "preflight/1", "passed": True, "invariants": [INVARIANT]}, True),
        ("preflight", {"schema": "preflight/1", "passed": False, "invariants": [INVARIANT]}, False),
        ("decision", DECISION, True),
        (
            "decision",
            DECISION | {"candidates": [CANDIDATE | {"promoted": True}]},
            False,
        ),
        ("directions", [{"title": "More genres", "why": "They helped."}], True),
        ("directions", [{"title": "More genres"}], False),
    ],
)
def test_artifact_schemas(schema: str, value: object, accepted: bool) -> None:
    path = REPOSITORY / "config" / "schemas" / f"{schema}.schema.yaml"
    found = problems(value, YAML(typ="safe", pure=True).load(path.read_text()))
    assert (not found) == accepted, found


def test_a_chain_keeps_its_order_wherever_its_plan_is_written(project: Path) -> None:
    """Keys of JSON are sorted on disk; and another order is another procedure."""
    path = project / "chain.eop.md"
    digests = set()
    for roles in (("writer", "critic"), ("critic", "writer")):
        nodes = f"{{{roles[0]}: scripted, {roles[1]}: scripted}}"
        assert SOUND.count("{reader: scripted, writer: scripted}") == 1
        path.write_text(SOUND.replace("{reader: scripted, writer: scripted}", nodes))
        plan = load(path, root=project)
        again = Plan.from_json(json.loads(dumps(plan.to_json())))
        assert tuple(again.phase("look").nodes) == tuple(plan.phase("look").nodes) == roles
        assert again.digest == plan.digest
        digests.add(plan.digest)
    assert len(digests) == 2
