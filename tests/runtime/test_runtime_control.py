"""Pause, resume, cancel: a person stops a run; what is at work ends, nothing else begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from research_run import Run

from eop.core.errors import EopError, ExitCode
from eop.runtime.frontier import enabled
from eop.runtime.lifecycle import leave
from eop.runtime.node import Instance, NodeResult, Outcome, Usage
from eop.runtime.reduce import Refused
from eop.runtime.verify import verify

if TYPE_CHECKING:
    from pathlib import Path

ANN = {"by": "ann@lab", "reason": "the disk is full"}


def test_while_paused_nothing_enters_and_what_is_open_leaves(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.to_branches()
    at_work = run.enter("it01_p01_implement")
    run.trace.append("run_paused", ANN)

    other = Instance.parse("it01_p02_implement")
    verdict = enabled(run.plan, run.trace.state(), other)
    assert (verdict.kind, verdict.reason) == (
        "wait",
        "the run is paused by ann@lab: the disk is full",
    )
    with pytest.raises(EopError, match="paused by ann@lab: the disk is full") as caught:
        run.enter(other.key)
    assert caught.value.exit_code is ExitCode.GATE_CLOSED
    entry = {"node": other.key, "attempt": 1, "reserve": {"actions": 20, "wall_s": 60}}
    with pytest.raises(Refused, match="paused by ann@lab"):
        run.trace.append("node_entered", entry)

    files = run.files("it01_p01_implement")
    result = NodeResult(Outcome.COMPLETED, "", files, Usage(1, 1.0))
    leave(run.trace, tmp_path, Instance.parse("it01_p01_implement"), at_work.attempt, result)
    position = run.advance()
    assert position.state.active == ()
    steps = {node.key for node in position.frontier.instances if node.step in ("train", "analyze")}
    assert steps == set()
    assert "it01_p01_implement" in {node.key for node in position.frontier.instances}
    assert position.frontier.reason == "the run is paused by ann@lab: the disk is full"

    run.trace.append("run_resumed", {"by": "bob@lab", "reason": ""})
    assert run.enter(other.key).kind == "run"
    assert verify(tmp_path, run.name) == []


def test_a_gate_may_be_answered_while_paused(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.do("it01_investigate")
    run.trace.append("run_paused", ANN)
    run.touch()
    assert run.trace.state().gates["it01_confirm"].status == "approved"
    with pytest.raises(EopError, match="paused"):
        run.enter("it01_propose")


def test_a_process_that_died_in_a_paused_run_is_noticed_and_costs_its_reservation(
    tmp_path: Path,
) -> None:
    run = Run(tmp_path)
    run.enter("it01_investigate")
    run.trace.append("run_paused", ANN)
    with pytest.raises(EopError, match="paused"):
        run.enter("it01_investigate")
    state = run.trace.state()
    node = state.nodes["it01_investigate"]
    assert (node.status, node.reason, node.usage) == ("abandoned", "its process died", None)
    assert (state.spent.actions, state.reserved.actions) == (10, 0)


def test_a_cancelled_run_has_ended_and_what_is_open_leaves(tmp_path: Path) -> None:
    run = Run(tmp_path)
    at_work = run.enter("it01_investigate")
    run.trace.append("run_cancelled", ANN)
    with pytest.raises(Refused, match="cancelled by ann@lab"):
        run.trace.append("run_resumed", ANN)
    assert run.advance().ended == "cancelled"
    failed = NodeResult(Outcome.FAILED, "late", {}, Usage(2, 1.0))
    leave(run.trace, tmp_path, Instance.parse("it01_investigate"), at_work.attempt, failed)
    state = run.advance().state
    assert state.ended == "cancelled"
    assert state.active == ()
    assert state.spent.actions == 2
    with pytest.raises(EopError, match="the run has ended: cancelled"):
        run.enter("it01_propose")
    assert verify(tmp_path, run.name) == []


def test_a_run_cannot_end_as_cancelled_by_itself(tmp_path: Path) -> None:
    run = Run(tmp_path)
    with pytest.raises(Refused, match="not over"):
        run.trace.append("run_ended", {"reason": "cancelled"})


@pytest.mark.parametrize(
    ("before", "kind", "why"),
    [
        ((), "run_resumed", "refused: the run is not paused$"),
        (("run_paused",), "run_paused", "paused by ann@lab"),
        (("run_cancelled",), "run_cancelled", "cancelled by ann@lab"),
        (("run_cancelled",), "run_paused", "cancelled by ann@lab"),
        (("run_cancelled", "end"), "run_paused", "has ended"),
    ],
)
def test_what_says_nothing_new_is_refused(
    tmp_path: Path, before: tuple[str, ...], kind: str, why: str
) -> None:
    run = Run(tmp_path)
    for earlier in before:
        if earlier == "end":
            run.advance()
        else:
            run.trace.append(earlier, ANN)
    with pytest.raises(Refused, match=why):
        run.trace.append(kind, ANN)


def test_a_paused_run_may_be_cancelled(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.trace.append("run_paused", ANN)
    run.trace.append("run_cancelled", {"by": "bob@lab", "reason": "no use"})
    assert run.advance().ended == "cancelled"
    assert str(run.trace.state().halt) == "the run is cancelled by bob@lab: no use"
