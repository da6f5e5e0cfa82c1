"""A whole run, and what each turn of it allows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from research_run import Run, research

from eop.core.errors import EopError, ExitCode
from eop.protocol.model import Join, Phase
from eop.runtime.frontier import dependencies, enabled
from eop.runtime.node import Branch, Instance, Outcome
from eop.runtime.reduce import Refused
from eop.runtime.verify import verify

if TYPE_CHECKING:
    from pathlib import Path


def keys(instances: tuple[Instance, ...]) -> list[str]:
    return [instance.key for instance in instances]


def test_a_run_of_two_iterations_completes(tmp_path: Path) -> None:
    run = Run(tmp_path)
    position = run.advance()
    assert keys(position.frontier.instances) == ["it01_investigate"]
    assert keys(position.frontier.closed_gates) == ["it01_confirm"]
    assert position.waiting == ()

    position = run.to_branches()
    assert position.state.branches == {
        (1, "proposal"): {"p01": "A wider net", "p02": "A deeper net"}
    }
    assert "it01_p02_analyze" in keys(position.frontier.instances)
    assert keys(position.frontier.closed_gates) == ["it01_evolve"]

    run.branch("p01")
    run.branch("p02")
    run.do("it01_promote")
    position = run.touch()
    assert position.state.iteration == 2
    assert keys(position.frontier.instances) == ["it02_propose"]
    assert "it01_promote" in keys(position.frontier.earlier)
    with pytest.raises(EopError, match="is not the current one"):
        run.enter("it03_propose")
    with pytest.raises(EopError, match="first iteration only"):
        run.enter("it02_investigate")

    run.do("it02_propose")
    run.touch()
    for branch in ("p01", "p02"):
        run.branch(branch, 2)
    run.do("it02_promote")
    position = run.touch()
    assert position.ended == "completed"
    assert verify(tmp_path, "r1") == []
    with pytest.raises(EopError, match="the run has ended"):
        run.enter("it03_propose")
    assert run.enter("it01_propose").kind == "adopt"


def test_advance_is_idempotent(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.do("it01_investigate")
    first = run.advance()
    page = first.waiting[0].request
    before = page.stat().st_mtime_ns
    assert run.advance() == first
    assert page.stat().st_mtime_ns == before


@pytest.mark.parametrize(
    "key", ["it01_propose", "it01_p01_implement", "it01_promote", "it01_confirm", "it02_propose"]
)
def test_nothing_runs_before_its_needs(tmp_path: Path, key: str) -> None:
    run = Run(tmp_path)
    with pytest.raises(EopError) as caught:
        run.enter(key)
    assert caught.value.code == "EOP735"
    assert len(run.trace.events()) == 1


def test_a_closed_gate_has_its_own_exit_code(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.do("it01_investigate")
    run.advance()
    with pytest.raises(EopError, match="gate it01_confirm is closed") as caught:
        run.enter("it01_propose")
    assert caught.value.exit_code is ExitCode.GATE_CLOSED


def test_a_rejection_sends_back_with_its_reason_and_ends_when_spent(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.do("it01_investigate")
    position = run.touch("rejected", "look at the timestamps")
    assert keys(position.frontier.instances) == ["it01_investigate_r2"]
    assert keys(position.frontier.earlier) == ["it01_investigate"]
    assert position.state.feedback == {(1, "investigate"): "look at the timestamps"}
    assert position.state.artifact(run.plan, "investigate_text", 1) is None
    with pytest.raises(EopError, match="newest revision"):
        run.trace.append(
            "node_entered",
            {"node": "it01_propose", "attempt": 1, "reserve": {"actions": 10, "wall_s": 60}},
        )

    run.do("it01_investigate_r2")
    position = run.advance()
    assert [view.instance.key for view in position.waiting] == ["it01_confirm_r2"]
    assert position.waiting[0].request.name.startswith("it01-confirm.r2.")
    assert run.touch("rejected").ended == "rejected"


def test_going_back_before_the_fan_out_closes_the_branches(tmp_path: Path) -> None:
    plan = research()
    gates = tuple(
        replace(g, on_reject=replace(g.on_reject, goto="propose", max=1)) if g.id == "evolve" else g
        for g in plan.gates
    )
    run = Run(tmp_path, replace(plan, gates=gates))
    run.to_branches()
    run.branch("p01")
    run.branch("p02")
    run.do("it01_promote")
    position = run.touch("rejected", "too timid")
    assert position.state.branches == {}
    run.do("it01_propose_r2")
    position = run.touch()
    assert "it01_p02_train_r2" in keys(position.frontier.instances)
    run.do("it01_p02_implement_r2")


def test_a_failed_branch_is_skipped_and_analyzed(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.to_branches()
    run.do("it01_p01_implement", Outcome.BLOCKED)
    with pytest.raises(EopError, match="has not left"):
        run.enter("it01_p01_analyze")
    skipped = run.enter("it01_p01_train")
    assert (skipped.kind, skipped.reason) == ("skip", "it01_p01_implement ended as blocked")
    run.do("it01_p01_analyze")
    with pytest.raises(EopError, match="it01_p02_analyze has not left"):
        run.enter("it01_promote")
    run.branch("p02")
    run.do("it01_promote")
    assert verify(tmp_path, "r1") == []


def test_a_failed_analysis_does_not_undo_a_good_branch(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.to_branches()
    for branch in ("p01", "p02"):
        run.do(f"it01_{branch}_implement")
        run.do(f"it01_{branch}_train")
        run.do(f"it01_{branch}_analyze", Outcome.BLOCKED)
    assert run.enter("it01_promote").kind == "run"


def test_a_join_without_good_branches_ends_the_run(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.to_branches()
    for branch in ("p01", "p02"):
        run.do(f"it01_{branch}_implement", Outcome.TAMPERED)
        run.enter(f"it01_{branch}_train")
        run.do(f"it01_{branch}_analyze")
    entered = run.enter("it01_promote")
    assert entered.kind == "skip"
    assert entered.reason == "0 of 2 branches completed, 1 needed"
    assert run.advance().ended == "failed"


def test_a_failed_trunk_phase_ends_the_run(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.do("it01_investigate", Outcome.FAILED)
    position = run.advance()
    assert position.ended == "failed"
    assert keys(position.frontier.instances) == ["it01_investigate"]
    assert position.frontier.reason == "the run has ended: failed"


def test_a_phase_for_failed_branches_only(tmp_path: Path) -> None:
    plan = research()
    phases = tuple(
        replace(p, on_branch=("failed",)) if p.id == "analyze" else p for p in plan.phases
    )
    run = Run(tmp_path, replace(plan, phases=phases))
    run.to_branches()
    run.do("it01_p01_implement")
    run.do("it01_p01_train")
    assert run.enter("it01_p01_analyze").reason == "its branch did not fail"


def test_later_phases_of_a_failed_branch_stay_skipped(tmp_path: Path) -> None:
    plan = research()
    publish = Phase(
        "publish", 75, "Publish", "", needs=("analyze",), branch="proposal", function="publish"
    )
    phases = tuple(
        replace(p, join=Join("publish", 1)) if p.id == "promote" else p for p in plan.phases
    )
    run = Run(tmp_path, replace(plan, phases=(*phases, publish)))
    run.to_branches()
    run.do("it01_p01_implement", Outcome.BLOCKED)
    run.enter("it01_p01_train")
    run.do("it01_p01_analyze")
    assert run.enter("it01_p01_publish").kind == "skip"


def test_dependencies_follow_branches_joins_and_iterations(tmp_path: Path) -> None:
    run = Run(tmp_path)
    state = run.to_branches().state

    def needs(key: str) -> list[str]:
        return keys(dependencies(run.plan, state, Instance.parse(key)))

    assert needs("it01_p02_train") == ["it01_p02_implement"]
    assert needs("it01_promote") == ["it01_p01_analyze", "it01_p02_analyze"]
    assert needs("it01_p01_implement") == ["it01_approve"]
    assert needs("it02_propose") == ["it01_confirm"]
    assert enabled(run.plan, state, Instance.parse("it01_p03_train")).kind == "refused"


def test_artifacts_are_looked_up_from_the_branch_outwards(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.to_branches()
    run.do("it01_p01_implement")
    state = run.trace.state()

    def path(
        name: str, iteration: int, branch: str | None = None, item: str = "proposal"
    ) -> str | None:
        at = Branch(item, branch) if branch else None
        found = state.artifact(run.plan, name, iteration, at)
        return found.path.removeprefix("runs/r1/") if found else None

    assert path("implement_text", 1, "p01") == "it01/p01/implement/artifacts/implement.md"
    assert path("implement_text", 1, "p02") is None
    assert path("implement_text", 1, "p01", item="other") is None
    assert path("implement_text", 1) is None
    assert path("proposals", 1, "p01") == "it01/propose/artifacts/proposals.json"
    assert path("proposals", 2) is None
    assert path("investigate_text", 2, "p01") == "it01/investigate/artifacts/investigate.md"
    with pytest.raises(KeyError):
        path("nothing", 1)


@pytest.mark.parametrize(
    ("kind", "data", "why"),
    [
        ("sung", {}, "unknown event type 'sung'"),
        ("run_ended", {"reason": "bored"}, "may not be 'bored'"),
        ("run_ended", {"reason": "completed"}, "it is not over"),
        ("run_ended", {"reason": "completed", "by": "me"}, "unknown key 'by'"),
        ("loop_continued", {"iteration": 2}, "may not begin"),
        ("node_skipped", {"node": "it01_investigate", "reason": ""}, "may not be skipped: run"),
        ("node_abandoned", {"node": "it01_investigate", "attempt": 1, "reason": ""}, "not open"),
        ("gate_requested", {"gate": "it01_confirm", "digest": "0" * 16}, "has not left"),
        ("gate_requested", {"gate": "it01_propose", "digest": "0" * 16}, "is no gate"),
        (
            "gate_approved",
            {"gate": "it01_confirm", "digest": "0" * 16, "by": "me", "reason": ""},
            "does not wait",
        ),
        (
            "branches_opened",
            {"iteration": 1, "item": "proposal", "branches": {"p01": "t"}, "artifact": "0" * 64},
            "no fan-out",
        ),
        (
            "node_entered",
            {"node": "it01_investigate", "attempt": 2, "reserve": {"actions": 10, "wall_s": 60}},
            "due for attempt 1",
        ),
        (
            "node_entered",
            {"node": "it01_investigate", "attempt": 1, "reserve": {"actions": 0, "wall_s": 0}},
            "must reserve",
        ),
        (
            "node_entered",
            {"node": "it001_investigate", "attempt": 1, "reserve": {"actions": 10, "wall_s": 60}},
            "is written it01_investigate",
        ),
        (
            "run_started",
            {"run": "r", "plan": "0" * 64, "config": "c", "snapshot": "s", "variables": {}},
            "already",
        ),
    ],
)
def test_what_is_not_declared_is_refused(
    tmp_path: Path, kind: str, data: dict[str, object], why: str
) -> None:
    run = Run(tmp_path)
    with pytest.raises(Refused, match=why) as caught:
        run.trace.append(kind, data)
    assert (caught.value.code, caught.value.exit_code) == ("EOP730", ExitCode.STATE)
    assert len(run.trace.events()) == 1


@pytest.mark.parametrize(
    ("item", "branches", "artifact", "why"),
    [
        ("proposal", {"p01": "a", "p02": "b", "p03": "c", "p04": "d"}, None, "at most 3"),
        ("proposal", {"p01": "a", "p03": "b"}, None, "are named p01"),
        ("proposal", {"p01": "a"}, "0" * 64, "committed 'proposals'"),
        ("idea", {"p01": "a"}, None, "those of 'proposal', not of 'idea'"),
    ],
)
def test_branches_are_bounded_and_named(
    tmp_path: Path, item: str, branches: dict[str, str], artifact: str | None, why: str
) -> None:
    run = Run(tmp_path)
    run.do("it01_investigate")
    run.touch()
    run.do("it01_propose")
    view = run.advance().waiting[0]
    run.trace.append(
        "gate_approved",
        {"gate": view.instance.key, "digest": view.digest, "by": "a person", "reason": ""},
    )
    listed = run.trace.state().artifact(run.plan, "proposals", 1)
    assert listed is not None
    data = {
        "iteration": 1,
        "item": item,
        "branches": branches,
        "artifact": artifact or listed.sha256,
    }
    with pytest.raises(Refused, match=why):
        run.trace.append("branches_opened", data)


def test_another_plan_cannot_take_over_a_run(tmp_path: Path) -> None:
    Run(tmp_path)
    with pytest.raises(EopError, match=r"trace is broken at 00000001\.json: .*not this one"):
        Run(tmp_path, research(version="2"))
