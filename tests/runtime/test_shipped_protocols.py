"""Every shipped protocol is played to its end: phases, gates, branches, all turns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from research_run import PROPOSALS, Run

from eop.protocol.compiler import load
from eop.protocol.expressions import fields_of
from eop.protocol.model import Phase
from eop.runtime.frontier import enabled
from eop.runtime.node import Instance, Outcome

if TYPE_CHECKING:
    from eop.protocol.model import Plan

REPOSITORY = Path(__file__).parents[2]
SHIPPED = sorted((REPOSITORY / "config" / "protocols").glob("*.eop.md"))
MOST_CALLS = 400


def content(phase: Phase, plan: Plan, *, better: bool) -> str:
    """What a node of this phase leaves: a list where branches are opened over it.

    Else the facts that it owes: what is asked for is true, and every turn has a new champion, or
    with ``better`` off none.
    """
    lists = {head.fan_out.artifact for head in plan.heads if head.fan_out}
    if any(output.name in lists for output in phase.outputs):
        return json.dumps(PROPOSALS)
    document: dict[str, Any] = {"phase": phase.id}
    for term, kind in plan.owed(phase.id).items():
        _, field = fields_of(term)
        document[field] = {"boolean": True, "text": field if better else "base"}[kind]
    return json.dumps(document)


def play(run: Run, *, failing: str = "", better: bool = True) -> str:
    """Do whatever may run, approve every gate; the reason why the run ended."""
    for _ in range(MOST_CALLS):
        position = run.touch()
        if position.ended:
            return position.ended
        state = run.trace.state()
        ready = [
            node
            for node in position.frontier.instances
            if isinstance(run.plan.steps[node.step], Phase)
            and enabled(run.plan, state, node).kind in ("run", "skip")
        ]
        if not ready and not position.waiting:
            raise AssertionError(f"it stands still: {position.frontier.reason}")
        for node in ready[:1]:
            if enabled(run.plan, state, node).kind == "skip":
                run.enter(node.key)
                continue
            outcome = Outcome.FAILED if node.step == failing else Outcome.COMPLETED
            text = content(run.plan.phase(node.step), run.plan, better=better)
            run.do(node.key, outcome, text=text)
    raise AssertionError("it does not end")


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name.split(".")[0])
def test_a_shipped_protocol_runs_to_its_end(path: Path, tmp_path: Path) -> None:
    plan = load(path, root=REPOSITORY)
    run = Run(tmp_path, plan)
    assert play(run) == "completed"
    state = run.trace.state()
    steps = {Instance.parse(key).step for key in (*state.nodes, *state.gates)}
    assert steps == set(plan.steps)
    assert state.iteration == (plan.loop.max if plan.loop else 1)


def test_hstu_evolve_ends_when_its_patience_is_spent(tmp_path: Path) -> None:
    [path] = [path for path in SHIPPED if path.name.startswith("hstu-evolve")]
    run = Run(tmp_path, load(path, root=REPOSITORY), variables={"patience": 3})
    assert play(run, better=False) == "completed"
    assert run.trace.state().iteration == 3


def test_a_turn_of_litgpt_without_any_measurement_has_failed(tmp_path: Path) -> None:
    [path] = [path for path in SHIPPED if path.name.startswith("litgpt")]
    run = Run(tmp_path, load(path, root=REPOSITORY))
    assert play(run, failing="measure") == "failed"
    state = run.trace.state()
    assert state.nodes["it01_p01_analyze"].status == Outcome.COMPLETED
    assert state.nodes["it01_compare"].status == Outcome.SKIPPED
