"""A run goes on under a changed plan only where all that has happened stays what it was."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from research_run import Run, agent, research

from eop.core.errors import EopError
from eop.core.files import write_json
from eop.protocol.model import Budget, Gate, Loop, OnReject
from eop.runtime.migration import differences, kept_plan
from eop.runtime.reduce import Refused
from eop.runtime.trace import Trace
from eop.runtime.verify import verify

if TYPE_CHECKING:
    from pathlib import Path

    from eop.protocol.model import Plan


def with_step(plan: Plan, name: str, **changes: Any) -> Plan:
    phases = tuple(replace(p, **changes) if p.id == name else p for p in plan.phases)
    gates = tuple(replace(g, **changes) if g.id == name else g for g in plan.gates)
    return replace(plan, phases=phases, gates=gates)


LONGER_ANALYSIS = with_step(research(), "analyze", body="Write two pages.")
MORE_TURNS = research(loop=Loop("again", 100, ("evolve",), "propose", 5))
MORE_BUDGET = research(budget=Budget(5000, 36000))
ONE_MORE = research(phases=(*research().phases, agent("write_up", 95, needs=("evolve",))))


@pytest.mark.parametrize("new", [LONGER_ANALYSIS, MORE_TURNS, MORE_BUDGET])
def test_what_nothing_has_happened_to_may_change(tmp_path: Path, new: Plan) -> None:
    run = Run(tmp_path)
    run.to_branches()
    run = run.migrate(new)
    run.branch("p01")
    run.branch("p02")
    run.do("it01_promote")
    run.touch()
    assert run.trace.state().plan == new.digest
    assert run.trace.state().iteration == 2
    assert verify(tmp_path, run.name) == []
    assert Trace(run.folder / "trace", new).state() == run.trace.state()


def test_a_step_may_be_added_after_what_has_happened_and_removed_again(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.to_branches()
    run = run.migrate(ONE_MORE)
    run = run.migrate(research())
    run.branch("p01")
    assert verify(tmp_path, run.name) == []


def test_a_question_that_waits_is_asked_again(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.do("it01_investigate")
    old = run.advance().waiting[0]
    run = run.migrate(MORE_TURNS)
    assert "it01_confirm" not in run.trace.state().gates
    new = run.advance().waiting[0]
    assert new.digest != old.digest
    old.approve.write_text("")
    assert run.advance().waiting, "the old answer is none to the new question"
    run.touch()
    run.do("it01_propose")
    old.approve.unlink()
    assert verify(tmp_path, run.name) == []


@pytest.mark.parametrize(
    ("new", "why"),
    [
        (with_step(research(), "propose", body="Other."), "'propose' .*: body changed"),
        (with_step(research(), "approve", question="Now?"), "'approve' .*: question changed"),
        (with_step(research(), "implement", budget=Budget(21, 60)), "'implement' .*: budget ch"),
        (
            research(
                phases=tuple(p for p in research().phases if p.id != "investigate"),
                gates=(Gate("confirm", 20, (), (), OnReject()), *research().gates[1:]),
            ),
            "'investigate' was removed",
        ),
        (research(target="other"), "'target' of the front matter"),
        (
            research(variables={"patience": {"type": "integer", "default": 2}}),
            "the variables have changed, .* write the value into the expression",
        ),
        (research(facts={"proposals.n": "integer"}), "'proposals.n' was not recorded when 'prop"),
        (research(budget=Budget(5, 36000)), "spent 6 actions, the run's budget is 5"),
        (
            research(budget=Budget(12, 36000)),
            r"event 6 \(node_entered\) would not be allowed: .*12 actions",
        ),
    ],
)
def test_what_has_happened_may_not_change(tmp_path: Path, new: Plan, why: str) -> None:
    run = Run(tmp_path)
    run.to_branches()
    run.do("it01_p01_implement") if "budget ch" in why else None
    with pytest.raises(Refused, match=why):
        run.migrate(new)
    assert run.trace.state().plan == research().digest


def test_expressions_may_read_what_phases_are_yet_to_leave(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.to_branches()
    told = agent("tell", 95, needs=("evolve",), when="decision.good")
    run = run.migrate(
        research(phases=(*research().phases, told), facts={"decision.good": "boolean"})
    )
    run.branch("p01")
    run.branch("p02")
    run.do("it01_promote", text='{"good": false}')
    run.touch()
    assert run.trace.state().nodes["it01_promote"].facts == {"decision.good": False}
    assert run.enter("it01_tell").reason == "its guard is false: decision.good"
    assert verify(tmp_path, run.name) == []


def test_what_was_recorded_stays_read(tmp_path: Path) -> None:
    facts = {"investigate_text.ok": "boolean"}
    run = Run(tmp_path, research(facts=facts))
    run.do("it01_investigate", text='{"ok": true}')
    with pytest.raises(Refused, match=r"'investigate_text.ok' was recorded .* no expression reads"):
        run.migrate(research())
    run.migrate(research(facts={**facts, "decision.good": "boolean"}))


def test_who_was_told_the_whole_document_was_told_of_another_one(tmp_path: Path) -> None:
    old, new = research(document="Old."), research(document="New.")
    run = Run(tmp_path, with_step(old, "evolve", question="Old?"))
    run.to_branches()
    run.migrate(with_step(new, "evolve", question="New?"))
    (tmp_path / "again").mkdir()
    run = Run(tmp_path / "again", with_step(old, "investigate", context="full"))
    run.to_branches()
    with pytest.raises(Refused, match="a phase that is told all of it has been at work"):
        run.migrate(with_step(new, "investigate", context="full"))


def test_a_step_that_finished_turns_would_have_had_is_refused(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.to_second_turn()
    early = research(phases=(*research().phases, agent("survey", 95)))
    with pytest.raises(Refused, match=r"\(loop_continued\) would not be allowed"):
        run.migrate(early)


def test_nobody_may_be_at_work_and_an_ended_run_is_over(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.enter("it01_investigate")
    with pytest.raises(Refused, match="at work: it01_investigate"):
        run.migrate(MORE_TURNS)
    run.trace.append("run_cancelled", {"by": "a", "reason": ""})
    run.trace.append("node_abandoned", {"node": "it01_investigate", "attempt": 1, "reason": ""})
    run.advance()
    with pytest.raises(Refused, match="the run has ended"):
        run.migrate(MORE_TURNS)


def test_verify_needs_every_plan_that_the_run_was_under(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.to_branches()
    old, new = run.plan, MORE_TURNS
    run.migrate(new)
    write_json(run.folder / "plan.json", old.to_json())
    assert any("goes on under plan" in line for line in verify(tmp_path, run.name))
    with pytest.raises(EopError, match="EOP716"):
        Trace(run.folder / "trace", old).append("run_paused", {"by": "a", "reason": ""})

    write_json(run.folder / "plan.json", new.to_json())
    write_json(run.folder / kept_plan(old.digest), LONGER_ANALYSIS.to_json())
    assert any("not this one" in line for line in verify(tmp_path, run.name))


def test_a_change_that_names_no_kept_plan_is_refused(tmp_path: Path) -> None:
    run = Run(tmp_path)
    data = {"from": run.plan.digest, "to": "a" * 64, "by": "a", "reason": ""}
    with pytest.raises(Refused, match=r"plan\.aaaaaaaaaaaaaaaa\.json is missing"):
        run.trace.append("plan_changed", data)
    with pytest.raises(Refused, match="the run is under plan"):
        run.trace.append("plan_changed", {**data, "from": "b" * 64})


def test_differences_name_steps_and_keys() -> None:
    new = replace(with_step(ONE_MORE, "train", tools=("read",)), version="2")
    new = replace(new, gates=new.gates[:2], loop=None)
    assert differences(research(), new) == [
        "version: '1' -> '2'",
        "step 'evolve' was removed",
        "step 'again' was removed",
        "step 'write_up' was added",
        "step 'train' was changed: tools",
    ]
    moved = with_step(research(), "train", line=999)
    assert differences(research(), moved) == []
