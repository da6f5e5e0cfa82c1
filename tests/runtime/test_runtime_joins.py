"""Joins over a run on disk: what late, failed and cut-off branches do."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from research_run import Run, research

from eop.protocol.model import ANY, Join
from eop.runtime.frontier import enabled
from eop.runtime.joins import CUT_OFF
from eop.runtime.lifecycle import leave
from eop.runtime.node import Instance, NodeResult, Outcome, Usage
from eop.runtime.reduce import Refused

if TYPE_CHECKING:
    from pathlib import Path

    from eop.protocol.model import Plan


def any_of(at_least: int = 1) -> Plan:
    plan = research()
    phases = [replace(p, join=Join("analyze", at_least, ANY)) if p.join else p for p in plan.phases]
    return replace(plan, phases=tuple(phases))


def verdict(run: Run, key: str) -> tuple[str, str]:
    found = enabled(run.plan, run.trace.state(), Instance.parse(key))
    return found.kind, found.reason


def skip(run: Run, *keys: str) -> None:
    for key in keys:
        assert run.enter(key).kind == "skip"


def test_when_a_join_has_enough_the_other_branches_are_cut_off(tmp_path: Path) -> None:
    run = Run(tmp_path, any_of())
    run.to_branches()
    run.do("it01_p02_implement")
    assert verdict(run, "it01_p02_train") == ("run", "")
    run.branch("p01")
    assert verdict(run, "it01_p02_train") == ("skip", CUT_OFF)
    assert verdict(run, "it01_promote") == ("wait", "it01_p02_analyze has not left yet")
    skip(run, "it01_p02_train", "it01_p02_analyze")
    node = run.trace.state().nodes["it01_p02_train"]
    assert (node.status, node.reason, node.attempt) == (Outcome.SKIPPED, CUT_OFF, 0)
    assert verdict(run, "it01_promote") == ("run", "")


def test_a_node_at_work_may_finish_and_nothing_follows_it(tmp_path: Path) -> None:
    run = Run(tmp_path, any_of())
    run.to_branches()
    at_work = run.enter("it01_p02_implement")
    run.branch("p01")
    result = NodeResult(Outcome.COMPLETED, "", run.files("it01_p02_implement"), Usage(3, 1.0))
    done = leave(run.trace, run.root, Instance.parse("it01_p02_implement"), at_work.attempt, result)
    assert done["outcome"] == "completed"
    assert verdict(run, "it01_p02_train") == ("skip", CUT_OFF)


def test_a_late_branch_whose_last_phase_completes_counts(tmp_path: Path) -> None:
    run = Run(tmp_path, any_of())
    run.to_branches()
    for step in ("implement", "train"):
        run.do(f"it01_p02_{step}")
    late = run.enter("it01_p02_analyze")
    run.branch("p01")
    result = NodeResult(Outcome.COMPLETED, "", run.files("it01_p02_analyze"), Usage(3, 1.0))
    leave(run.trace, run.root, Instance.parse("it01_p02_analyze"), late.attempt, result)
    assert verdict(run, "it01_promote") == ("run", "")


def test_no_further_attempt_in_a_branch_that_was_cut_off(tmp_path: Path) -> None:
    run = Run(tmp_path, any_of())
    run.to_branches()
    run.do("it01_p02_implement")
    run.do("it01_p02_train", Outcome.FAILED)
    assert verdict(run, "it01_p02_train")[0] == "run"
    run.branch("p01")
    assert verdict(run, "it01_p02_train") == ("skip", CUT_OFF)


def test_a_branch_that_failed_is_no_branch_that_completed(tmp_path: Path) -> None:
    run = Run(tmp_path, any_of())
    run.to_branches()
    run.do("it01_p01_implement", Outcome.BLOCKED)
    skip(run, "it01_p01_train")
    run.do("it01_p01_analyze")
    run.do("it01_p02_implement")
    assert verdict(run, "it01_p02_train") == ("run", "")


def test_a_join_that_needs_more_than_were_opened_is_skipped(tmp_path: Path) -> None:
    run = Run(tmp_path, any_of(3))
    run.to_branches()
    run.branch("p01")
    run.branch("p02")
    skip(run, "it01_promote")
    node = run.trace.state().nodes["it01_promote"]
    assert (node.status, node.reason) == (Outcome.SKIPPED, "2 of 2 branches completed, 3 needed")
    assert run.advance().ended == "failed"


@pytest.mark.parametrize("key", ["it01_p02_train", "it01_p02_implement"])
def test_nothing_enters_a_branch_that_was_cut_off(tmp_path: Path, key: str) -> None:
    run = Run(tmp_path, any_of())
    run.to_branches()
    if key.endswith("train"):
        run.do("it01_p02_implement")
    run.branch("p01")
    state = run.trace.state()
    reserve = {"actions": 20 if key.endswith("implement") else 0, "wall_s": 0}
    with pytest.raises(Refused, match="cut off"):
        run.trace.append("node_entered", {"node": key, "attempt": 1, "reserve": reserve})
    assert run.trace.state() == state


def test_a_join_counts_the_branches_of_its_own_iteration(tmp_path: Path) -> None:
    """Those of the first one were good; that helps no later one."""
    run = Run(tmp_path)
    run.to_second_turn()
    run.do("it02_propose")
    run.touch()
    for branch in ("p01", "p02"):
        run.do(f"it02_{branch}_implement", Outcome.FAILED)
        assert run.enter(f"it02_{branch}_train").kind == "skip"
        run.do(f"it02_{branch}_analyze")
    assert run.enter("it02_promote").reason == "0 of 2 branches completed, 1 needed"
    assert run.advance().ended == "failed"
