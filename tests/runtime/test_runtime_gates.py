"""Gates: what a person reads, and what counts as an answer."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from research_run import Run, research
from waiting_gate import at_first_gate, view

from eop.core.errors import EopError, ExitCode
from eop.protocol.model import OnReject
from eop.runtime.gates import gate_digest
from eop.runtime.node import Artifact, Instance, Outcome
from eop.runtime.reduce import Refused
from eop.runtime.sentinels import read_sentinel

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run that waits at its first gate."""
    return at_first_gate(tmp_path)


def is_closed(run: Run) -> bool:
    return bool(run.advance().waiting)


def test_the_request_says_what_it_shows_and_how_to_answer(run: Run) -> None:
    gate = view(run)
    text = gate.request.read_text()
    relative = gate.approve.relative_to(run.root)
    assert gate.approve.name == f"it01-confirm.{gate.digest}.approved"
    assert f"touch {relative}" in text
    assert f"touch {gate.reject.relative_to(run.root)}" in text
    assert "runs/r1/it01/investigate/artifacts/investigate.md" in text
    assert "it01_investigate\n" in text
    assert "goes on with propose" in text
    assert "back to investigate" in text
    assert not gate.approve.exists()


def test_long_and_binary_artifacts_are_not_shown_whole(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.do("it01_investigate", text="é" * 9000)
    text = view(run).request.read_text()
    assert "shortened" in text
    assert len(text) < 9000

    binary = Run(tmp_path / "other")
    binary.do("it01_investigate", text="a\0b")
    assert "Not shown here" in view(binary).request.read_text()


def test_rejections_are_counted_gate_by_gate(tmp_path: Path) -> None:
    """Each of these gates may send back once: the first one's rejection is not the second's."""
    plan = research()
    gates = tuple(
        replace(gate, on_reject=replace(gate.on_reject, max=1)) if gate.id == "approve" else gate
        for gate in plan.gates
    )
    run = Run(tmp_path, replace(plan, gates=gates))
    run.do("it01_investigate")
    run.touch("rejected")
    run.do("it01_investigate_r2")
    run.touch()
    run.do("it01_propose_r2")
    assert run.touch("rejected").ended is None
    run.do("it01_propose_r3")
    assert run.touch("rejected").ended == "rejected"


@pytest.mark.parametrize(("goto", "iteration"), [("promote", 1), ("investigate", 2)])
def test_a_gate_sends_back_only_to_what_this_iteration_has_run_before_it(
    tmp_path: Path, goto: str, iteration: int
) -> None:
    """The checks refuse such a protocol; the machine does not rest on them."""
    plan = research()
    gates = tuple(
        replace(gate, on_reject=OnReject(goto, 3)) if gate.id == "approve" else gate
        for gate in plan.gates
    )
    run = Run(tmp_path, replace(plan, gates=gates))
    if iteration == 2:
        run.to_second_turn()
    else:
        run.do("it01_investigate")
        run.touch()
    run.do(f"it{iteration:02d}_propose")
    with pytest.raises(Refused, match=f"back to {goto}, which is not before it"):
        run.touch("rejected")


def test_the_answer_keeps_who_and_why(run: Run) -> None:
    view(run).approve.write_text("fine\x1b[0m, but hurry\n")
    state = run.advance().state
    answer = state.gates["it01_confirm"]
    assert answer.status == "approved"
    assert answer.reason == "fine�[0m, but hurry"
    assert answer.by == view_owner(run)


def view_owner(run: Run) -> str:
    return next(run.gates.glob("*.approved")).owner()


def test_a_rejection_wins_over_an_approval(run: Run) -> None:
    gate = view(run)
    gate.approve.touch()
    gate.reject.touch()
    assert run.advance().state.gates["it01_confirm"].status == "rejected"


@pytest.mark.parametrize("attack", ["symlink", "dangling", "directory", "fifo"])
def test_only_a_regular_file_is_an_answer(run: Run, attack: str) -> None:
    path = view(run).approve
    if attack == "symlink":
        path.symlink_to(run.folder / "plan.json")
    elif attack == "dangling":
        path.symlink_to("nowhere")
    elif attack == "directory":
        path.mkdir()
    else:
        os.mkfifo(path)
    assert is_closed(run)
    assert view(run).problems == (f"{path.name}: not a regular file, it decides nothing",)


def test_who_tried_to_say_no_is_heard_first(run: Run) -> None:
    gate = view(run)
    gate.reject.symlink_to("nowhere")
    gate.approve.touch()
    decision = read_sentinel(run.root / "gates", "r1", gate.instance, gate.digest)
    assert decision.status == "none"
    (problem,) = decision.problems
    assert problem.startswith(gate.reject.name)
    assert "no approval counts" in problem
    gate.reject.unlink()
    assert run.advance().state.gates["it01_confirm"].status == "approved"


@pytest.mark.parametrize(
    "name",
    [
        "it01-confirm.{wrong}.approved",
        "it01-confirm.{digest}.APPROVED",
        "it01-confirm.{upper}.approved",
        "it01-confirm.{digest}.approved.txt",
        "it01-confirm.approved",
        "IT01-confirm.{digest}.approved",
    ],
)
def test_any_other_name_decides_nothing_and_is_reported(run: Run, name: str) -> None:
    gate = view(run)
    wrong = gate.digest[::-1]
    stray = name.format(wrong=wrong, digest=gate.digest, upper=gate.digest.upper() + "X")
    (run.gates / stray).touch()
    assert is_closed(run)
    (problem,) = view(run).problems
    assert problem.startswith(f"{stray}: decides nothing")


def test_the_answer_to_another_gate_decides_nothing(run: Run) -> None:
    first = view(run)
    first.approve.touch()
    run.advance()
    run.do("it01_propose")
    second = view(run)
    shutil.copy(first.approve, run.gates / f"it01-approve.{first.digest}.approved")
    assert is_closed(run)
    assert second.digest != first.digest


def test_the_answer_of_another_run_decides_nothing(run: Run) -> None:
    other = Run(run.root, name="r2")
    other.do("it01_investigate")
    gate = view(other)
    assert gate.digest != view(run).digest
    (run.gates / gate.approve.name).touch()
    assert is_closed(run)


def test_what_was_shown_may_not_change_before_the_answer_counts(run: Run) -> None:
    gate = view(run)
    shown = run.folder / "it01/investigate/artifacts/investigate.md"
    shown.write_text("it01_investigatE\n")
    gate.approve.touch()
    with pytest.raises(EopError, match="tampered") as caught:
        run.advance()
    assert caught.value.exit_code is ExitCode.STATE
    shown.unlink()
    with pytest.raises(EopError, match="is missing"):
        run.advance()
    assert run.trace.state().gates["it01_confirm"].status == "requested"


def test_what_was_approved_may_not_change_before_it_is_used(run: Run) -> None:
    run.touch()
    (run.folder / "it01/investigate/artifacts/investigate.md").write_text("other")
    with pytest.raises(EopError, match="tampered"):
        run.enter("it01_propose")


def test_an_ungated_input_may_not_change_before_it_is_used(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.to_branches()
    run.do("it01_p01_implement")
    (run.folder / "it01/p01/implement/artifacts/implement.md").write_text("other")
    with pytest.raises(EopError, match="tampered"):
        run.enter("it01_p01_train")


@pytest.mark.parametrize(
    ("run", "plan", "gate", "sha256"),
    [
        ("other", "p", "it01_confirm", "a"),
        ("r1", "other", "it01_confirm", "a"),
        ("r1", "p", "it02_confirm", "a"),
        ("r1", "p", "it01_confirm_r2", "a"),
        ("r1", "p", "it01_approve", "a"),
        ("r1", "p", "it01_confirm", "b"),
    ],
)
def test_the_digest_covers_all_that_an_answer_is_about(
    run: str, plan: str, gate: str, sha256: str
) -> None:
    asked = gate_digest("r1", "p", Instance(1, "confirm"), [Artifact("t", "t.md", "a", 1)])
    other = gate_digest(run, plan, Instance.parse(gate), [Artifact("t", "t.md", sha256, 1)])
    assert asked != other


def test_nobody_is_asked_about_what_did_not_complete(tmp_path: Path) -> None:
    blind = replace(research().gate("confirm"), shows=())
    run = Run(tmp_path, research(gates=(blind, *research().gates[1:])))
    run.do("it01_investigate", Outcome.BLOCKED)
    digest = gate_digest("r1", run.plan.digest, Instance(1, "confirm"), [])
    with pytest.raises(EopError, match="it01_investigate ended as blocked"):
        run.trace.append("gate_requested", {"gate": "it01_confirm", "digest": digest})


def test_an_event_cannot_approve_other_content(run: Run) -> None:
    data = {"gate": "it01_confirm", "digest": "f" * 16, "by": "agent", "reason": ""}
    with pytest.raises(EopError, match="shows other content"):
        run.trace.append("gate_approved", data)
