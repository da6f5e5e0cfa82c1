"""Entering and leaving: attempts, budgets, outputs, and processes that die."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from research_run import Run, research

from eop.core.errors import EopError
from eop.protocol.model import Amount, Budget, Plan
from eop.runtime.budgets import overdrawn
from eop.runtime.lifecycle import Entered, abandon, is_final, leave, outcome, perform
from eop.runtime.node import Instance, NodeResult, Outcome, Usage
from eop.runtime.reduce import Refused
from eop.runtime.state import evolve

if TYPE_CHECKING:
    from pathlib import Path

FIRST = Instance(1, "investigate")


def with_budget(actions: int | None = None, wall_s: int | None = None) -> Plan:
    return research(budget=Budget(actions=actions, wall_s=wall_s))


def test_a_left_node_is_adopted_and_never_done_twice(tmp_path: Path) -> None:
    run = Run(tmp_path)
    document = run.do("it01_investigate")
    again = run.enter("it01_investigate")
    assert again.kind == "adopt"
    assert outcome(again.state, FIRST) == document
    assert document["usage"] == {"actions": 3}
    json.dumps(document)


def test_failures_are_tried_again_while_attempts_are_left(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.to_branches()
    run.do("it01_p01_implement")
    node = Instance.parse("it01_p01_train")
    run.do(node.key, Outcome.TIMED_OUT)
    assert not is_final(run.trace.state(), node)
    run.do(node.key, Outcome.FAILED)
    assert is_final(run.trace.state(), node)
    assert run.enter(node.key).kind == "adopt"


@pytest.mark.parametrize("end", [Outcome.BLOCKED, Outcome.TAMPERED, Outcome.BUDGET_EXHAUSTED])
def test_other_ends_are_not_tried_again(tmp_path: Path, end: Outcome) -> None:
    run = Run(tmp_path)
    run.to_branches()
    run.do("it01_p01_implement", end)
    assert run.enter("it01_p01_implement").kind == "adopt"


def test_what_agents_leave_is_final_since_their_pattern_has_tried_again(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.to_branches()
    assert run.plan.phase("implement").budget.attempts == 2
    run.do("it01_p01_implement", Outcome.FAILED)
    assert run.enter("it01_p01_implement").kind == "adopt"


def test_perform_works_until_the_last_outcome(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.to_branches()
    run.do("it01_p01_implement")
    node = Instance.parse("it01_p01_train")
    attempts = []

    def work(entered: Entered) -> NodeResult:
        attempts.append(entered.attempt)
        if entered.attempt == 1:
            return NodeResult(Outcome.FAILED, "slipped")
        return NodeResult(Outcome.COMPLETED, artifacts=run.files(node.key))

    document = perform(run.trace, run.root, run.plan, node, work)
    assert attempts == [1, 2]
    assert (document["outcome"], document["attempt"]) == ("completed", 2)
    assert perform(run.trace, run.root, run.plan, node, work) == document
    assert attempts == [1, 2]


def test_a_dead_process_is_no_failure_and_costs_its_reservation(tmp_path: Path) -> None:
    run = Run(tmp_path)
    for attempt in (1, 2, 3):
        assert run.enter("it01_investigate").attempt == attempt
    state = run.trace.state()
    assert state.spent == Amount(20, 120)
    assert state.reserved == Amount(10, 60)
    assert state.active == ("it01_investigate",)
    result = NodeResult(Outcome.COMPLETED, artifacts=run.files("it01_investigate"))
    leave(run.trace, run.root, FIRST, 3, result)
    assert run.trace.state().nodes["it01_investigate"].failures == 0
    assert run.trace.state().reserved == Amount()


def test_a_late_orphan_cannot_leave(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.enter("it01_investigate")
    run.enter("it01_investigate")
    with pytest.raises(Refused, match="attempt 1 of it01_investigate is not open"):
        leave(run.trace, run.root, FIRST, 1, NodeResult(Outcome.FAILED))
    with pytest.raises(Refused):
        abandon(run.trace, Instance(1, "propose"), "never began")


def test_unknown_usage_counts_as_the_reservation(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.do("it01_investigate", usage=Usage(None, 2.5))
    state = run.trace.state()
    assert state.spent == Amount(10, 2.5)
    assert state.unmetered == 0
    assert outcome(state, FIRST)["usage"] == {"actions": None}


def test_unknown_usage_without_reservation_is_told(tmp_path: Path) -> None:
    plan = with_budget(100)
    free = replace(plan.phase("investigate"), budget=Budget())
    run = Run(tmp_path, replace(plan, phases=(free, *plan.phases[1:])))
    run.do("it01_investigate", usage=Usage(None, 2.5))
    assert run.trace.state().unmetered == 1


def test_more_actions_than_allowed_is_no_completion(tmp_path: Path) -> None:
    run = Run(tmp_path)
    document = run.do("it01_investigate", usage=Usage(11, 1.0))
    assert document["outcome"] == "budget_exhausted"
    assert document["reason"] == "11 actions used, 10 allowed"
    assert run.trace.state().spent == Amount(11, 1.0)
    assert run.advance().ended == "budget_exhausted"


@pytest.mark.parametrize("limits", [{"actions": 9}, {"wall_s": 59}])
def test_what_the_run_cannot_pay_is_never_started(tmp_path: Path, limits: dict[str, int]) -> None:
    run = Run(tmp_path, with_budget(**limits))
    entered = run.enter("it01_investigate")
    assert entered.kind == "skip"
    assert outcome(entered.state, FIRST)["outcome"] == "budget_exhausted"
    assert entered.state.spent == Amount()
    assert run.advance().ended == "budget_exhausted"


def test_open_reservations_count_as_spent(tmp_path: Path) -> None:
    run = Run(tmp_path, with_budget(actions=32))
    run.to_branches()
    assert run.trace.state().spent.actions == 6
    run.enter("it01_p01_implement")
    late = run.enter("it01_p02_implement")
    assert late.kind == "skip"
    assert "6 left" in late.reason


def test_functions_need_no_actions(tmp_path: Path) -> None:
    run = Run(tmp_path, with_budget(actions=26))
    run.to_branches()
    run.do("it01_p01_implement", usage=Usage(20, 1.0))
    run.do("it01_p01_train", usage=Usage(0, 5.0))
    assert run.enter("it01_p01_analyze").kind == "skip"


@pytest.mark.parametrize("fault", ["missing", "symlink", "directory", "outside"])
def test_a_completion_needs_its_outputs(tmp_path: Path, fault: str) -> None:
    root = tmp_path / "project"
    run = Run(root)
    run.enter("it01_investigate")
    path = run.files("it01_investigate")["investigate_text"]
    if fault == "outside":
        path = tmp_path / "elsewhere.md"
        path.write_text("x")
    else:
        path.unlink()
    if fault == "symlink":
        path.symlink_to(run.folder / "plan.json")
    if fault == "directory":
        path.mkdir()
    result = NodeResult(Outcome.COMPLETED, artifacts={"investigate_text": path})
    document = leave(run.trace, root, FIRST, 1, result)
    assert document["outcome"] == "failed"
    assert "investigate_text" in str(document["reason"])


def test_an_undeclared_hole_is_a_failure_too(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.enter("it01_investigate")
    document = leave(run.trace, run.root, FIRST, 1, NodeResult(Outcome.COMPLETED))
    assert document["reason"] == "output 'investigate_text' is missing: investigate.md"


ITEM = {"id": "a", "title": "A"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "is not JSON"),
        ('{"a": 1}', "is not a list"),
        (json.dumps([{"id": str(n), "title": "t"} for n in range(4)]), "at most 3"),
        (json.dumps([ITEM, ITEM]), "is there twice"),
        (json.dumps([{"id": "../x", "title": "t"}]), "must be a slug"),
        (json.dumps([{"id": "a\n", "title": "t"}]), "must be a slug"),
        (json.dumps([{"id": "a", "title": "t\nu"}]), "must be one line"),
        (json.dumps([{"id": "a"}]), "must be one line"),
        (json.dumps(["a"]), "not an object"),
    ],
)
def test_a_bad_list_of_proposals_fails_its_author(tmp_path: Path, text: str, why: str) -> None:
    run = Run(tmp_path)
    run.do("it01_investigate")
    run.touch()
    document = run.do("it01_propose", text=text)
    assert document["outcome"] == "failed"
    assert why in str(document["reason"])
    assert run.advance().ended == "failed"


def test_no_proposals_open_no_branches(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.do("it01_investigate")
    run.touch()
    run.do("it01_propose", text="[]")
    assert run.touch().state.branches == {(1, "proposal"): {}}
    assert run.enter("it01_promote").reason == "0 of 0 branches completed, 1 needed"


def test_proposals_edited_after_the_approval_open_nothing(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.do("it01_investigate")
    run.touch()
    run.do("it01_propose")
    view = run.advance().waiting[0]
    answer = {"gate": view.instance.key, "digest": view.digest, "by": "x", "reason": ""}
    run.trace.append("gate_approved", answer)
    (run.folder / "it01/propose/artifacts/proposals.json").write_text("[]")
    with pytest.raises(EopError, match="tampered"):
        run.advance()


def test_what_is_open_may_still_leave_after_the_end(tmp_path: Path) -> None:
    plan = research()
    extra = replace(plan.phase("investigate"), id="survey", line=11)
    run = Run(tmp_path, replace(plan, phases=(*plan.phases, extra)))
    run.enter("it01_survey")
    run.do("it01_investigate", Outcome.BLOCKED)
    assert run.advance().ended == "failed"
    leave(run.trace, run.root, Instance(1, "survey"), 1, NodeResult(Outcome.FAILED))
    assert run.trace.state().reserved == Amount()


def test_tokens_and_dollars_are_reserved_and_settled_exactly(tmp_path: Path) -> None:
    plan = research(budget=Budget(actions=500, wall_s=36000, tokens=1000, micro_usd=300_000))
    limit = Budget(actions=10, wall_s=60, tokens=600, micro_usd=100_000)
    phases = tuple(replace(p, budget=limit) if p.id == "investigate" else p for p in plan.phases)
    run = Run(tmp_path, replace(plan, phases=phases))
    entered = run.enter("it01_investigate").state
    assert (entered.reserved.tokens, entered.reserved.micro_usd) == (600, 100_000)
    files = run.files("it01_investigate")
    result = NodeResult(Outcome.COMPLETED, "", files, Usage(3, 1.0, tokens=0))
    leave(run.trace, run.root, Instance.parse("it01_investigate"), 1, result)
    state = run.trace.state()
    assert state.spent.tokens == 0, "measured as none"
    assert state.spent.micro_usd == 100_000, "not measured: what was set aside"
    assert (state.reserved.tokens, state.reserved.micro_usd) == (0, 0)


def test_more_tokens_than_allowed_are_not_completed(tmp_path: Path) -> None:
    plan = research()
    limit = Budget(actions=10, wall_s=60, tokens=600)
    phases = tuple(replace(p, budget=limit) if p.id == "investigate" else p for p in plan.phases)
    run = Run(tmp_path, replace(plan, phases=phases))
    done = run.do("it01_investigate", usage=Usage(3, 1.0, tokens=601))
    assert (done["outcome"], done["reason"]) == (
        "budget_exhausted",
        "601 tokens used, 600 allowed",
    )


def test_what_the_run_overdrew_is_named_in_the_words_of_the_protocol(tmp_path: Path) -> None:
    run = Run(tmp_path)
    limits = Budget(actions=5, wall_s=60, tokens=100, micro_usd=1_500_000)
    plan = replace(run.plan, budget=limits)
    state = run.trace.state()
    fits = evolve(state, {"spent": Amount(5, 60.0, 100, 1_500_000)})
    assert overdrawn(plan, fits) == []
    over = evolve(state, {"spent": Amount(6, 60.5, 101, 1_500_001)})
    assert overdrawn(plan, over) == [
        "spent 6 actions, the run's budget is 5",
        "spent 101 tokens, the run's budget is 100",
        "spent 1.500001 usd, the run's budget is 1.5",
        "spent 60.5 s wall, the run's budget is 60 s",
    ]
