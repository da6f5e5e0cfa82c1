"""Plans before changes: only an approved one is implemented; two lanes that read each other."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from toy_target import (
    CLEAN,
    LEAK,
    PLANNED,
    ROOT,
    SCHEMAS,
    check,
    finding,
    planned_phase,
    scripted,
    task,
)

from eop.agents.products.codex import Codex
from eop.agents.products.program import Settings
from eop.patterns import run
from eop.protocol.model import Budget, Review
from eop.runtime.node import Outcome

if TYPE_CHECKING:
    from pathlib import Path

SCORE = "toy/models/score.py"


def step(role: str, *actions: dict[str, Any], **when: Any) -> dict[str, Any]:
    return {"when": {"role": role, **when}, "do": list(actions)}


def plan(role: str, text: str, **when: Any) -> dict[str, Any]:
    return step(role, {"write": {"output": "plan", "text": f"{text}\n"}}, **when)


def edit(find: str, replace: str) -> dict[str, Any]:
    return {"edit": {"file": SCORE, "find": find, "replace": replace}}


CODING = [
    step("implementer", edit("return positive, negative", f"{LEAK}, negative")),
    step("reviewer", {"review": {"from_check": True}}),
    step("fixer", edit(f"{LEAK}, negative", CLEAN)),
]
OBJECTION = {"review": {"findings": [finding("P1")]}}
PLANNING = [
    plan("planner", "first", round=1),
    plan("planner", "second", round=2),
    step("plan_reviewer", OBJECTION, round=1),
    step("plan_reviewer", {"review": {}}),
]
LANES = [
    plan("planner", "A", round=1),
    plan("co_planner", "B", round=1),
    plan("planner", "A after B", round=2),
    plan("co_planner", "B after A", round=2),
    plan("merger", "A and B", round=1),
    plan("merger", "A and B, mended", round=2),
    step("plan_reviewer", OBJECTION, round=1),
    step("plan_reviewer", {"review": {}}),
]


def inputs(folder: Path, node: str) -> dict[str, str]:
    found = (folder / "node/work" / node / "a01/inputs").iterdir()
    return {path.name: path.read_text() for path in sorted(found)}


def is_told_by(folder: Path, node: str, prompt: str) -> bool:
    """Whether what the prompt says of the role stands in what the node was told."""
    text = (ROOT / "config/prompts" / f"{prompt}.md").read_text()
    own = text.split("${role}\n")[1].split("${access}")[0]
    return own in (folder / "node/work" / node / "a01/prompt.md").read_text()


def nodes(folder: Path) -> list[str]:
    return sorted(path.parent.name for path in (folder / "node/work").glob("*/committed.json"))


def test_an_objection_is_answered_before_anything_is_implemented(tmp_path: Path) -> None:
    product = scripted(tmp_path, *PLANNING, *CODING)
    result = run(task(tmp_path, planned_phase(), product, check=check))
    assert (result.outcome, result.reason) == (Outcome.COMPLETED, "approved")
    assert nodes(tmp_path) == [
        *("01-planner", "02-plan_reviewer", "03-planner", "04-plan_reviewer"),
        *("05-implementer", "06-check", "07-reviewer", "08-fixer", "09-check", "10-reviewer"),
    ]
    assert inputs(tmp_path, "02-plan_reviewer")["plan.md"] == "first\n"
    assert "P1" in inputs(tmp_path, "03-planner")["findings.json"]
    assert inputs(tmp_path, "03-planner")["plan.md"] == "first\n"
    for later in ("05-implementer", "07-reviewer", "08-fixer"):
        assert inputs(tmp_path, later)["plan.md"] == "second\n"
    assert "findings.json" not in inputs(tmp_path, "05-implementer")
    assert result.artifacts["plan"].read_text() == "second\n"
    record = json.loads(result.artifacts["plan_review"].read_text())
    assert [one["verdict"] for one in record["rounds"]] == ["fix", "approved"]
    for name in ("plan_review", "review"):
        jsonschema.validate(json.loads(result.artifacts[name].read_text()), SCHEMAS["review"])
    assert f"+    {CLEAN}" in result.artifacts["patch"].read_text()


@pytest.mark.parametrize(
    ("pattern", "severity"), [("plan_then_implement", "major"), ("plan_merge", "critical")]
)
def test_what_is_not_approved_is_not_implemented(
    tmp_path: Path, pattern: str, severity: str
) -> None:
    """A review of code lets milder faults pass when its rounds are spent; one of plans does not."""
    stubborn = step("plan_reviewer", {"review": {"findings": [finding("P1", severity)]}})
    product = scripted(tmp_path, stubborn, *LANES, *CODING)
    phase = planned_phase(pattern, review=Review(rounds=1))
    result = run(task(tmp_path, phase, product, check=check))
    assert (result.outcome, result.reason) == (Outcome.FAILED, "plan not approved: P1 is wrong")
    assert not [name for name in nodes(tmp_path) if "implementer" in name]
    assert sorted(result.artifacts) == ["experiment", "plan", "plan_review"]


def test_two_lanes_read_each_other_and_one_plan_is_made_of_both(tmp_path: Path) -> None:
    product = scripted(tmp_path, *LANES, *CODING)
    result = run(task(tmp_path, planned_phase("plan_merge"), product, check=check))
    assert (result.outcome, result.reason) == (Outcome.COMPLETED, "approved")
    assert nodes(tmp_path)[:8] == [
        *("01-planner", "02-co_planner", "03-planner", "04-co_planner", "05-merger"),
        *("06-plan_reviewer", "07-merger", "08-plan_reviewer"),
    ]
    for node, prompt in {
        "01-planner": "planner",
        "02-co_planner": "planner",
        "04-co_planner": "cross_reader",
        "05-merger": "merger",
        "07-merger": "plan_fixer",
        "09-implementer": "implementer",
    }.items():
        assert is_told_by(tmp_path, node, prompt)
    drafts = ["draft_co_planner.md", "draft_planner.md"]
    for lane in ("01-planner", "02-co_planner"):
        assert list(inputs(tmp_path, lane)) == ["item.json"]
    for lane in ("03-planner", "04-co_planner"):
        given = inputs(tmp_path, lane)
        assert [given[name] for name in drafts] == ["B\n", "A\n"]
    merged = inputs(tmp_path, "05-merger")
    assert [merged[name] for name in drafts] == ["B after A\n", "A after B\n"]
    assert inputs(tmp_path, "09-implementer")["plan.md"] == "A and B, mended\n"
    assert result.artifacts["plan"].read_text() == "A and B, mended\n"


def test_a_lane_that_fails_ends_the_phase_with_its_outcome(tmp_path: Path) -> None:
    lost = step("co_planner", {"crash": 5})
    result = run(task(tmp_path, planned_phase("plan_merge"), scripted(tmp_path, lost, *LANES)))
    assert result.outcome is Outcome.FAILED
    assert result.reason.startswith("co_planner: invalid_output: exit status 5")
    assert nodes(tmp_path) == ["01-planner"]


def test_lanes_share_what_is_left_and_leave_as_much(tmp_path: Path) -> None:
    phase = planned_phase("plan_merge", budget=Budget(actions=20))
    run(task(tmp_path, phase, scripted(tmp_path, *LANES[:5])))
    limits = [
        json.loads((tmp_path / "node/work" / node / "a01/request.json").read_text())["limits"]
        for node in ("01-planner", "02-co_planner", "03-planner", "05-merger")
    ]
    assert [one["actions"] for one in limits] == [5, 5, 4, 16]


def test_planners_and_plan_reviewers_change_nothing(tmp_path: Path) -> None:
    evil = step("plan_reviewer", {"edit_protected": SCORE}, {"review": {}})
    result = run(task(tmp_path, planned_phase(), scripted(tmp_path, evil, *PLANNING, *CODING)))
    assert result.outcome is Outcome.TAMPERED
    assert f"{SCORE}: changed by a read-only node" in result.reason


def test_a_product_that_is_not_there_blocks_the_phase_before_anyone_works(tmp_path: Path) -> None:
    product = scripted(tmp_path, *PLANNING, *CODING)
    gone = Codex(Settings(binary="codex-that-nobody-installed", model="m"))
    cast = {**dict.fromkeys(PLANNED, "scripted"), "reviewer": "codex"}
    phase = planned_phase(nodes=cast, review=Review("minor", 2, "other"))
    both = {"scripted": product, "codex": gone}
    result = run(task(tmp_path, phase, product, products=both, check=check))
    assert result.outcome is Outcome.BLOCKED
    assert result.reason.startswith("reviewer: product 'codex': there is no program ")
    assert "no other product may take its place" in result.reason
    assert result.usage.actions == 0
    assert not list((tmp_path / "node/work").glob("[0-9]*"))


def test_a_reviewer_of_the_author_s_vendor_blocks_where_another_is_required(
    tmp_path: Path,
) -> None:
    phase = planned_phase(review=Review("minor", 2, "other"))
    result = run(task(tmp_path, phase, scripted(tmp_path, *PLANNING, *CODING)))
    assert result.outcome is Outcome.BLOCKED
    assert result.reason == (
        "plan_reviewer is of the vendor of planner, scripted: another is required"
    )
