"""Guards, ways back and loop conditions: what they do to a run, and what the machine refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from judged_run import LEAST, WHEN, chain, entry, judge, refuse, says, skip, status
from research_run import Run, agent, research

from eop.core.errors import EopError
from eop.protocol.model import Back, FanOut, Gate, Join, Loop, OnReject, Output, Phase
from eop.runtime.due import due
from eop.runtime.frontier import frontier
from eop.runtime.node import Outcome
from eop.runtime.reduce import Refused
from eop.runtime.trace import Trace
from eop.runtime.verify import verify

if TYPE_CHECKING:
    from pathlib import Path


def guarded(root: Path, **more: object) -> Run:
    """judge -> act (guarded) -> tell."""
    act = agent("act", 20, needs=("judge",), when=WHEN)
    return Run(root, chain(judge(), act, agent("tell", 30, needs=("act",)), **more))


def test_a_true_guard_lets_in(tmp_path: Path) -> None:
    run = guarded(tmp_path)
    run.do("it01_judge", text=says())
    node = run.trace.state().nodes["it01_judge"]
    assert node.facts == {"verdict.go": True, "verdict.score": 2.0}
    run.do("it01_act")
    run.do("it01_tell")
    assert run.advance().ended == "completed"


@pytest.mark.parametrize("text", [says(go=False), says(score=1.5)])
def test_what_a_false_guard_holds_back_is_skipped_and_no_failure(tmp_path: Path, text: str) -> None:
    run = guarded(tmp_path)
    run.do("it01_judge", text=text)
    assert "its guard is false" in refuse(run, "node_entered", **entry("it01_act"))
    assert run.advance().ended is None
    skip(run, "it01_act", "it01_tell")
    assert status(run, "it01_act") == ("skipped", f"its guard is false: {WHEN}")
    assert status(run, "it01_tell") == ("skipped", "it01_act ended as skipped")
    assert run.advance().ended == "completed"
    assert verify(run.root, run.name) == []


def test_the_run_s_own_variable_decides(tmp_path: Path) -> None:
    run = Run(tmp_path, guarded(tmp_path / "other").plan, variables={"least": 3})
    run.do("it01_judge", text=says())
    skip(run, "it01_act")


@pytest.mark.parametrize("variables", [{}, {"least": "x"}, {"least": 1, "more": 2}])
def test_a_run_begins_with_the_variables_of_its_plan(
    tmp_path: Path, variables: dict[str, object]
) -> None:
    run = guarded(tmp_path)
    trace = Trace(tmp_path / "runs/r2/trace", run.plan)
    facts = {"run": "r2", "plan": run.plan.digest, "config": "c", "snapshot": "s"}
    with pytest.raises(Refused, match="variables"):
        trace.append("run_started", {**facts, "variables": variables})


@pytest.mark.parametrize(
    ("text", "says_why"),
    [
        ("{}", "'verdict.go' is missing in verdict.json; 'verdict.score' is missing"),
        ('{"go": 1, "score": 2}', "'verdict.go' is not of type boolean"),
        ('{"go": true, "score": 1e400}', "'verdict.score' is not of type number, or too large"),
        ('{"go": true, "score": NaN}', "'verdict.score' is not of type number"),
        ("not JSON", "'verdict.go' cannot be read: verdict.json is not JSON"),
        ("[]", "'verdict.go' is missing"),
    ],
)
def test_a_phase_without_its_facts_has_failed(tmp_path: Path, text: str, says_why: str) -> None:
    run = guarded(tmp_path)
    document = run.do("it01_judge", text=text)
    assert document["outcome"] == "failed"
    assert says_why in str(document["reason"])
    assert run.trace.state().nodes["it01_judge"].facts == {}


@pytest.mark.parametrize("facts", [{}, {"verdict.go": True}, {"verdict.go": 1, "verdict.score": 2}])
def test_the_machine_refuses_other_facts(tmp_path: Path, facts: dict[str, object]) -> None:
    run = guarded(tmp_path)
    run.enter("it01_judge")
    artifact = {"name": "verdict", "path": "v.json", "sha256": "0" * 64, "size": 1}
    left = {
        "node": "it01_judge",
        "attempt": 1,
        "reason": "",
        "artifacts": [artifact],
        "usage": {"actions": 0, "wall_s": 0},
    }
    assert "its fact" in refuse(run, "node_left", **left, outcome="completed", facts=facts)
    if facts:
        assert "did not complete" in refuse(run, "node_left", **left, outcome="failed", facts=facts)


def test_verify_finds_a_fact_that_is_not_in_its_artifact(tmp_path: Path) -> None:
    run = guarded(tmp_path)
    run.do("it01_judge", text=says())
    (run.folder / "it01/judge/artifacts/verdict.json").write_text(says(score=2.5))
    assert "it01_judge: the fact 'verdict.score' is not what its artifact says" in verify(
        run.root, run.name
    )


def branches(root: Path, *, on_branch: tuple[str, ...], least: int, **more: object) -> Run:
    """The research plan with a guard on train, which reads what implement says of its branch."""
    plan = research(facts={"report.fit": "boolean"}, **more)
    phases = {phase.id: phase for phase in plan.phases}
    phases["implement"] = replace(phases["implement"], outputs=(Output("report", "report.json"),))
    phases["train"] = replace(phases["train"], when="report.fit")
    phases["analyze"] = replace(phases["analyze"], on_branch=on_branch)
    phases["promote"] = replace(phases["promote"], join=Join("analyze", least))
    run = Run(root, replace(plan, phases=tuple(phases.values())))
    run.to_branches()
    return run


ALWAYS = ("completed", "failed", "skipped")


def test_a_guard_ends_a_branch_without_a_failure(tmp_path: Path) -> None:
    run = branches(tmp_path, on_branch=("completed", "failed"), least=1)
    for branch, fit in (("p01", "true"), ("p02", "false")):
        run.do(f"it01_{branch}_implement", text=f'{{"fit": {fit}}}')
    run.do("it01_p01_train")
    run.do("it01_p01_analyze")
    skip(run, "it01_p02_train", "it01_p02_analyze")
    assert status(run, "it01_p02_analyze") == ("skipped", "it01_p02_train ended as skipped")
    run.do("it01_promote")


def test_on_branch_names_branches_that_a_guard_ended(tmp_path: Path) -> None:
    run = branches(tmp_path, on_branch=ALWAYS, least=2)
    for branch in ("p01", "p02"):
        run.do(f"it01_{branch}_implement", text='{"fit": false}')
        skip(run, f"it01_{branch}_train")
        run.do(f"it01_{branch}_analyze")
    skip(run, "it01_promote")
    assert status(run, "it01_promote")[1] == "0 of 2 branches completed, 2 needed"
    position = run.advance()
    assert position.state.gates["it01_evolve"].status == "skipped"
    assert position.state.iteration == 2


def test_a_join_that_failures_alone_would_keep_from_firing_has_failed(tmp_path: Path) -> None:
    run = branches(tmp_path, on_branch=ALWAYS, least=2)
    run.do("it01_p01_implement", text='{"fit": false}')
    run.do("it01_p02_implement", Outcome.FAILED)
    skip(run, "it01_p01_train", "it01_p02_train")
    run.do("it01_p01_analyze")
    run.do("it01_p02_analyze")
    skip(run, "it01_promote")
    assert run.advance().ended == "failed"


def test_a_fan_out_over_what_a_guard_kept_from_being_made(tmp_path: Path) -> None:
    plan = research(variables=LEAST)
    phases = tuple(
        replace(phase, when="least > 9") if phase.id == "propose" else phase
        for phase in plan.phases
    )
    run = Run(tmp_path, replace(plan, phases=phases, loop=None))
    run.do("it01_investigate")
    run.touch()
    skip(run, "it01_propose")
    position = run.advance()
    assert position.state.gates["it01_approve"].status == "skipped"
    skip(run, "it01_promote")
    assert run.advance().ended == "completed"


def back(root: Path, most: int = 2) -> Run:
    """draft -> judge (sends back to draft) -> tell, with a gate after the judge."""
    judged = judge(20, needs=("draft",), back=Back("draft", "not verdict.go", most))
    draft, tell = agent("draft", 10), agent("tell", 40, needs=("ask",))
    gate = Gate("ask", 30, ("judge",), ("verdict",), OnReject("draft", 1))
    return Run(root, chain(draft, judged, tell, gates=(gate,)))


def test_a_goto_gives_its_target_a_new_revision_with_a_reason(tmp_path: Path) -> None:
    run = back(tmp_path)
    run.do("it01_draft")
    assert "does not send" in refuse(run, "sent_back", node="it01_judge")
    run.do("it01_judge", text=says(go=False))
    state = run.trace.state()
    assert due(run.plan, state) == ("sent_back", {"node": "it01_judge"})
    position = run.advance()
    assert position.state.feedback[1, "draft"] == "it01_judge sent it back: not verdict.go"
    assert [node.key for node in frontier(run.plan, position.state).instances] == [
        "it01_draft_r2",
        "it01_judge_r2",
    ]
    run.do("it01_draft_r2")
    run.do("it01_judge_r2", text=says())
    assert [view.instance.key for view in run.advance().waiting] == ["it01_ask_r2"]
    assert "does not send" in refuse(run, "sent_back", node="it01_judge_r2")


def test_nothing_passes_a_phase_that_is_to_send_back(tmp_path: Path) -> None:
    judged = judge(20, back=Back("draft", "not verdict.go", 1), needs=("draft",))
    tell = agent("tell", 30, needs=("judge",))
    run = Run(tmp_path, chain(agent("draft", 10), judged, tell))
    run.do("it01_draft")
    assert [n.step for n in run.advance().frontier.instances] == ["draft", "judge"]
    run.do("it01_judge", text=says(go=False))
    with pytest.raises(EopError, match="it01_judge sends the run back first"):
        run.enter("it01_tell")
    assert "not over" in refuse(run, "run_ended", reason="completed")


def test_a_goto_is_bounded_and_then_the_run_goes_on(tmp_path: Path) -> None:
    run = back(tmp_path, most=1)
    run.do("it01_draft")
    run.do("it01_judge", text=says(go=False))
    run.advance()
    run.do("it01_draft_r2")
    run.do("it01_judge_r2", text=says(go=False))
    assert "does not send" in refuse(run, "sent_back", node="it01_judge_r2")
    assert [view.instance.key for view in run.advance().waiting] == ["it01_ask_r2"]
    run.touch("rejected", "no")
    run.do("it01_draft_r3")
    run.do("it01_judge_r3", text=says(go=False))
    assert run.trace.state().sent_back == {(1, "judge"): 1}
    assert run.touch().waiting == ()


def test_a_goto_that_may_be_taken_twice_is_taken_twice(tmp_path: Path) -> None:
    run = back(tmp_path, most=2)
    run.do("it01_draft")
    run.do("it01_judge", text=says(go=False))
    for revision in (2, 3):
        assert run.advance().state.sent_back == {(1, "judge"): revision - 1}
        run.do(f"it01_draft_r{revision}")
        run.do(f"it01_judge_r{revision}", text=says(go=False))
    assert [view.instance.key for view in run.advance().waiting] == ["it01_ask_r3"]


def turning(root: Path, **condition: str) -> Run:
    loop = Loop("again", 90, ("promote",), "promote", 5, **condition)
    decision = (Output("decision", "decision.json"),)
    promote = Phase("promote", 80, "Promote", "", function="promote", outputs=decision)
    facts = {"decision.champion": "text", "decision.parent": "text"}
    patience = {"patience": {"type": "integer", "default": 2}}
    return Run(root, chain(promote, facts=facts, loop=loop, variables=patience))


def decision(champion: str, parent: str) -> str:
    return json.dumps({"champion": champion, "parent": parent})


@pytest.mark.parametrize(
    "condition",
    [
        {"while_true": "iterations_without_promotion < patience"},
        {"until_true": "iterations_without_promotion >= patience"},
    ],
)
def test_a_loop_ends_when_its_condition_says_so(tmp_path: Path, condition: dict[str, str]) -> None:
    """A promotion starts the count anew."""
    run = turning(tmp_path, **condition)
    history = [("a", "a"), ("b", "a"), ("b", "b"), ("b", "b")]
    for iteration, (champion, parent) in enumerate(history, start=1):
        assert run.advance().ended is None
        run.do(f"it{iteration:02d}_promote", text=decision(champion, parent))
    assert "may not begin" in refuse(run, "loop_continued", iteration=5)
    assert run.advance().ended == "completed"


def test_a_loop_that_should_go_on_may_not_end(tmp_path: Path) -> None:
    run = turning(tmp_path, while_true="decision.champion != 'z'")
    run.do("it01_promote", text=decision("a", "a"))
    assert "not over" in refuse(run, "run_ended", reason="completed")
    assert run.advance().state.iteration == 2


@pytest.mark.parametrize("key", ["while_true", "until_true"])
def test_a_loop_does_not_turn_on_what_is_unknown(tmp_path: Path, key: str) -> None:
    run = turning(tmp_path, **{key: "decision.champion == 'z'"})
    [promote] = run.plan.phases
    plan = replace(run.plan, phases=(replace(promote, when="patience > 9"),))
    run = Run(tmp_path / "other", plan)
    skip(run, "it01_promote")
    assert run.advance().ended == "completed"


@pytest.mark.parametrize(
    ("when", "runs"),
    [
        ("branches == 2", True),
        ("branches > 2 or iteration > 1", False),
        ("branches < 2", False),
    ],
)
def test_the_number_of_branches_is_known_once_they_are_open(
    tmp_path: Path, when: str, runs: bool
) -> None:
    run = asked_of(tmp_path, promote=when)
    run.to_branches()
    run.branch("p01")
    run.branch("p02")
    assert run.enter("it01_promote").kind == ("run" if runs else "skip")


def test_the_number_of_branches_is_that_of_the_fan_out_before(tmp_path: Path) -> None:
    def fan_out(item: str, line: int) -> tuple[Phase, Phase, Phase]:
        outputs = (Output(f"{item}s", f"{item}s.json"),)
        work = agent(f"do_{item}", line + 1, needs=(f"list_{item}",), branch=item)
        return (
            agent(f"list_{item}", line, needs=("judge",), outputs=outputs),
            replace(work, fan_out=FanOut(item, f"{item}s", 3)),
            Phase(f"end_{item}", line + 2, "", "", join=Join(f"do_{item}", 1), when="branches == 2",
                  function="promote"),
        )  # fmt: skip

    run = Run(tmp_path, chain(judge(), *fan_out("one", 20), *fan_out("two", 30)))
    run.do("it01_judge", text=says())
    for item, count in (("one", 1), ("two", 2)):
        run.do(
            f"it01_list_{item}",
            text=json.dumps([{"id": f"x{n}", "title": "X"} for n in range(count)]),
        )
    run.advance()
    for item, count in (("one", 1), ("two", 2)):
        for number in range(1, count + 1):
            run.do(f"it01_p{number:02d}_do_{item}")
    skip(run, "it01_end_one")
    assert run.enter("it01_end_two").kind == "run"


def test_the_length_of_a_text_variable_is_asked(tmp_path: Path) -> None:
    plan = chain(
        judge(when="len(word) == 3"), variables={"word": {"type": "text", "default": "abc"}}
    )
    assert Run(tmp_path, plan).enter("it01_judge").kind == "run"
    short = Run(tmp_path / "short", plan, variables={"word": "ab"})
    assert short.enter("it01_judge").kind == "skip"


def test_a_guard_counts_the_fruitless_iterations_before_its_own(tmp_path: Path) -> None:
    run = turning(tmp_path)
    [promote] = run.plan.phases
    guarded = replace(promote, when="iterations_without_promotion < 1 or patience > 9")
    run = Run(tmp_path / "other", replace(run.plan, phases=(guarded,)))
    run.do("it01_promote", text=decision("a", "a"))
    run.advance()
    assert run.enter("it02_promote").kind == "skip"


def test_the_number_of_branches_is_unknown_where_no_fan_out_comes_before(tmp_path: Path) -> None:
    run = asked_of(tmp_path, propose="branches < 9 or patience < 9")
    run.do("it01_investigate")
    run.touch()
    skip(run, "it01_propose")
    why = "its guard is unknown: no branches are open"
    assert status(run, "it01_propose") == ("skipped", why)


def asked_of(root: Path, **guards: str) -> Run:
    """The research plan with guards."""
    plan = research(variables={"patience": {"type": "integer", "default": 2}})
    phases = tuple(replace(phase, when=guards.get(phase.id)) for phase in plan.phases)
    return Run(root, replace(plan, phases=phases, loop=None))


def test_a_first_promotion_ends_the_count_of_fruitless_iterations(tmp_path: Path) -> None:
    run = turning(tmp_path, until_true="iterations_without_promotion >= patience")
    for iteration, (champion, parent) in enumerate([("b", "a"), ("b", "b"), ("b", "b")], start=1):
        assert run.advance().ended is None
        run.do(f"it{iteration:02d}_promote", text=decision(champion, parent))
    assert run.advance().ended == "completed"
    other = turning(tmp_path / "other", until_true="iterations_without_promotion >= patience")
    other.do("it01_promote", text=decision("a", "a"))
    other.advance()
    other.do("it02_promote", text=decision("a", "a"))
    assert other.advance().ended == "completed"
