"""Every pattern, killed at each of its nodes in turn, comes to what a quiet run comes to."""

from __future__ import annotations

import json
import os
import signal
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from toy_target import (
    CLEAN,
    LEAK,
    bta_phase,
    check,
    dual_phase,
    finding,
    linear_phase,
    planned_phase,
    scripted,
    task,
)

from eop.patterns import run
from eop.protocol.model import Output
from eop.runtime.node import Outcome

if TYPE_CHECKING:
    from pathlib import Path

    from eop.protocol.model import Phase
    from eop.runtime.node import NodeResult

SCORE = "toy/models/score.py"
HANG = {"hang": 300}


def step(role: str, *actions: dict[str, Any], **when: Any) -> dict[str, Any]:
    return {"when": {"role": role, **when}, "do": list(actions)}


def edit(find: str, replace: str) -> dict[str, Any]:
    return {"edit": {"file": SCORE, "find": find, "replace": replace}}


def leaves(output: str, value: Any) -> dict[str, Any]:
    return {"write": {"output": output, "json": value}}


def writes(text: str) -> dict[str, Any]:
    return {"write": {"output": "plan", "text": f"{text}\n"}}


CODING = [
    step("implementer", edit("return positive, negative", f"{LEAK}, negative")),
    step("reviewer", {"review": {"from_check": True}}),
    step("fixer", edit(f"{LEAK}, negative", CLEAN)),
]
IDEAS = (Output("ideas", "ideas.json"),)
PARTS = [{"id": name, "task": "look"} for name in ("loss", "data", "inputs")]


@dataclass(frozen=True)
class Case:
    phase: Phase
    steps: list[dict[str, Any]]
    nodes: list[str]


CASES = {
    "linear": Case(
        linear_phase(nodes={"writer": "scripted", "critic": "scripted"}, outputs=IDEAS),
        [
            step("writer", leaves("ideas", {"n": 1})),
            step("critic", {"report": {"output": "ideas", "template": "{draft_ideas.n}2"}}),
        ],
        ["01-writer", "02-critic"],
    ),
    "dual": Case(
        dual_phase(),
        CODING,
        ["01-implementer", "03-reviewer", "04-fixer", "06-reviewer"],
    ),
    "plan_then_implement": Case(
        planned_phase(),
        [
            *(step("planner", writes(f"plan {n}"), round=n) for n in (1, 2)),
            step("plan_reviewer", {"review": {"findings": [finding("P1")]}}, round=1),
            step("plan_reviewer", {"review": {}}),
            *CODING,
        ],
        [
            *("01-planner", "02-plan_reviewer", "03-planner", "04-plan_reviewer"),
            *("05-implementer", "07-reviewer", "08-fixer", "10-reviewer"),
        ],
    ),
    "plan_merge": Case(
        planned_phase("plan_merge"),
        [
            *(step(role, writes(f"plan of {role}")) for role in ("planner", "co_planner")),
            step("merger", writes("merged"), round=1),
            step("merger", writes("mended"), round=2),
            step("plan_reviewer", {"review": {"findings": [finding("P1")]}}, round=1),
            step("plan_reviewer", {"review": {}}),
            step("implementer", edit("return positive, negative", CLEAN)),
            step("reviewer", {"review": {}}),
        ],
        [
            *("01-planner", "02-co_planner", "03-planner", "04-co_planner", "05-merger"),
            *("06-plan_reviewer", "07-merger", "08-plan_reviewer"),
            *("09-implementer", "11-reviewer"),
        ],
    ),
    "bta": Case(
        bta_phase(aggregate=True, outputs=(*IDEAS, Output("workers", "workers.json"))),
        [
            step("breakdown", leaves("parts", PARTS)),
            *(step("worker", leaves("ideas", [p["id"]]), part=p["id"]) for p in PARTS),
            step(
                "aggregate",
                {"report": {"output": "ideas", "template": "{worker-02-data-ideas.0} first"}},
            ),
        ],
        ["01-breakdown", "02-worker", "03-worker", "04-worker", "05-aggregate"],
    ),
}


def go(folder: Path, case: Case, steps: list[dict[str, Any]]) -> NodeResult:
    return run(task(folder, case.phase, scripted(folder, *steps), check=check))


def turns(folder: Path) -> dict[str, dict[str, Any]]:
    """The turn of each agent node, as a playbook can ask for it."""
    found = {}
    for path in sorted((folder / "node/work").glob("*/a01/request.json")):
        turn = json.loads(path.read_text())["turn"]
        asked = {key: turn[key] for key in ("role", "round", "part") if turn[key] is not None}
        found[path.parent.parent.name] = asked
    return found


def killed_at(folder: Path, case: Case, node: str, due: list[dict[str, Any]]) -> None:
    """Go on in a process of its own, and SIGKILL it while the product of ``node`` hangs.

    So does every product whose turn is ``due``: those at work at the same time end no sooner.
    """
    child = os.fork()
    if child == 0:
        go(folder, case, [*({"when": turn, "do": [HANG]} for turn in due), *case.steps])
        os._exit(0)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        streams = [path.read_text() for path in (folder / "node/work" / node).glob("a*/stdout")]
        if any('"started"' in text for text in streams):
            break
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def trees(folder: Path) -> dict[str, Any]:
    paths = sorted((folder / "node/work").glob("*/committed.json"))
    return {path.parent.name: json.loads(path.read_text())["tree"] for path in paths}


def lost_actions(folder: Path) -> int:
    """Actions of attempts that were cut short: they were done, and are paid for."""
    attempts = (folder / "node/work").glob("*/a*/stdout")
    cut = [path for path in attempts if not (path.parent / "result.json").exists()]
    return sum(path.read_text().count('"tool_call"') for path in cut)


@pytest.mark.parametrize("name", CASES)
def test_killed_at_each_node_it_ends_as_if_nothing_had_happened(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    quiet, troubled = tmp_path / "quiet", tmp_path / "troubled"
    for folder in (quiet, troubled):
        folder.mkdir()
    expected = go(quiet, case, case.steps)
    assert expected.outcome is Outcome.COMPLETED
    assert list(turns(quiet)) == case.nodes
    asked = turns(quiet)
    for number, node in enumerate(asked):
        killed_at(troubled, case, node, list(asked.values())[number:])
        assert node not in trees(troubled)
    result = go(troubled, case, case.steps)
    assert (result.outcome, result.reason) == (expected.outcome, expected.reason)
    assert trees(troubled) == trees(quiet)
    left = {key: path.read_bytes() for key, path in result.artifacts.items()}
    assert left == {key: path.read_bytes() for key, path in expected.artifacts.items()}
    assert result.usage.actions is not None
    assert result.usage.actions - lost_actions(troubled) == expected.usage.actions
    for node in case.nodes:
        tries = sorted(
            path.parent.name for path in troubled.glob(f"node/work/{node}/a*/result.json")
        )
        assert len(tries) == 1, f"{node} was done {len(tries)} times"
        assert tries[0] != "a01", f"{node} was not killed"
