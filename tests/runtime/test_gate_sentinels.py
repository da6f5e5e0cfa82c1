"""Attacks on sentinels: whatever is no person's fresh answer opens nothing, and is named."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from research_run import Run
from waiting_gate import at_first_gate, problem, view

from eop.core.errors import EopError, ExitCode
from eop.runtime import artifacts, sentinels
from eop.runtime.gates import gate_digest, gate_file
from eop.runtime.node import Instance
from eop.runtime.sentinels import UnusableError, read, read_sentinel
from eop.runtime.verify import verify

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run that waits at its first gate."""
    return at_first_gate(tmp_path)


def test_a_link_to_a_device_is_no_answer(run: Run) -> None:
    view(run).approve.symlink_to("/dev/null")
    assert "not a regular file, it decides nothing" in problem(run)


def test_a_hard_link_is_no_answer_whoever_owns_the_file(run: Run) -> None:
    older = run.root / "older.approved"
    older.write_text("by somebody, of something else")
    os.link(older, view(run).approve)
    assert "a hard link, whose owner did not make this name" in problem(run)
    older.unlink()
    assert not run.advance().waiting, "the only name that is left was made on purpose"


def test_a_huge_file_is_not_read_and_no_answer(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    path = view(run).approve
    with path.open("wb") as stream:
        stream.truncate(1 << 36)
    opened = os.fdopen
    taken: list[int] = []

    class Counted:
        def __init__(self, stream: object) -> None:
            self.stream = stream

        def __enter__(self) -> Counted:
            return self

        def __exit__(self, *_: object) -> None:
            self.stream.close()  # type: ignore[attr-defined]

        def fileno(self) -> int:
            return self.stream.fileno()  # type: ignore[attr-defined, no-any-return]

        def read(self, size: int) -> bytes:
            taken.append(size)
            return self.stream.read(size)  # type: ignore[attr-defined, no-any-return]

    monkeypatch.setattr(sentinels.os, "fdopen", lambda *a: Counted(opened(*a)))
    with pytest.raises(UnusableError, match="longer than 16384 bytes"):
        read(path)
    assert taken == [16385]


def test_a_fifo_that_takes_a_files_place_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.approved"
    path.touch()
    looked = Path.lstat

    def swapped(self: Path) -> os.stat_result:
        status = looked(self)
        path.unlink()
        os.mkfifo(path)
        return status

    monkeypatch.setattr(Path, "lstat", swapped)
    with pytest.raises(UnusableError, match="not a regular file"):
        read(path)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that any user may enter; pytest's own are the owner's alone."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_an_answer_that_may_not_be_read_decides_nothing(open_folder: Path) -> None:
    path = gate_file(open_folder, "r1", Instance(1, "confirm"), "0" * 16, "approved")
    path.parent.mkdir()
    path.touch()
    path.chmod(0)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        found = read_sentinel(open_folder, "r1", Instance(1, "confirm"), "0" * 16)
    finally:
        if root:
            os.seteuid(0)
    assert found.status == "none"
    assert "cannot be read (Permission denied), it decides nothing" in found.problems[0]


def test_a_trailing_space_and_a_hostile_name_are_shown_as_they_are(run: Run) -> None:
    gate = view(run)
    for odd in (" ", "\n  yes   rm -rf ~", "\u202e"):
        gate.approve.with_name(gate.approve.name + odd).touch()
    lines = view(run).problems
    assert len(lines) == 3
    assert all("decides nothing" in line and line.isprintable() for line in lines)
    assert any(".approved ': decides" in line for line in lines)


def test_a_flood_of_files_is_counted_not_listed(run: Run) -> None:
    gate = view(run)
    for number in range(50):
        gate.approve.with_name(f"{gate.approve.name}{number}").touch()
    lines = view(run).problems
    assert len(lines) == 11
    assert lines[-1] == "40 more files decide nothing"


def test_an_answer_made_before_the_question_stops_the_run(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.do("it01_investigate")
    made = run.folder / "it01/investigate/artifacts/investigate.md"
    shown = artifacts.commit(run.root, "investigate_text", made)
    digest = gate_digest("r1", run.plan.digest, Instance(1, "confirm"), [shown])
    early = gate_file(run.root / "gates", "r1", Instance(1, "confirm"), digest, "approved")
    early.parent.mkdir(parents=True)
    early.symlink_to("nowhere")
    with pytest.raises(EopError, match="before its question") as caught:
        run.advance()
    assert caught.value.exit_code is ExitCode.STATE
    assert str(caught.value.where).endswith(early.name)
    assert not run.trace.state().gates
    early.unlink()
    assert view(run).digest == digest


def test_the_same_content_asked_again_needs_a_new_answer(run: Run) -> None:
    first = view(run)
    run.touch("rejected", "again")
    run.do("it01_investigate_r2", text="it01_investigate\n")
    second = view(run)
    page = second.request.read_text()
    assert "### investigate_text: unchanged" in page
    assert second.digest != first.digest
    first.approve.touch()
    shutil.copy(first.approve, second.approve.with_name(f"it01-confirm.r2.{first.digest}.approved"))
    late, copied = view(run).problems
    assert late.startswith(f"{first.approve.name}: decides nothing, it answers it01_confirm ")
    assert "(rejected); changed since then: nothing that is shown" in late
    assert f"the gate now asks for digest {second.digest}" in copied


@pytest.mark.parametrize(
    "wrong",
    ["it01-confirm.{}.Approved", "IT01-CONFIRM.{}.approved", "it01-confirm.{}.approved.txt"],
)
def test_a_misspelt_answer_is_told_its_name(run: Run, wrong: str) -> None:
    gate = view(run)
    name = wrong.format(gate.digest)
    gate.approve.with_name(name).touch()
    assert problem(run) == (
        f"{name}: decides nothing, an answer is named exactly {gate.approve.name}, "
        "or .rejected at the end"
    )


def test_a_late_answer_is_told_which_file_has_changed(run: Run) -> None:
    first = view(run)
    run.touch("rejected", "again")
    run.do("it01_investigate_r2", text="better\n")
    first.approve.touch()
    assert problem(run).endswith("changed since then: investigate_text")


def test_the_answer_of_an_earlier_turn_opens_nothing(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.to_second_turn()
    run.do("it02_propose")
    gate = view(run)
    (old,) = run.gates.glob("it01-approve.*.approved")
    stray = gate.approve.with_name(old.name.replace("it01", "it02"))
    shutil.copy(old, stray)
    assert problem(run).startswith(f"{stray.name}: decides nothing")


def test_no_after_yes_and_yes_after_no_change_nothing_recorded(run: Run) -> None:
    gate = view(run)
    run.touch("rejected", "no")
    gate.approve.touch()
    assert run.advance().state.gates["it01_confirm"].status == "rejected"
    data = {"gate": "it01_confirm", "digest": gate.digest, "by": "me", "reason": ""}
    with pytest.raises(EopError, match="no gate of the run as it stands"):
        run.trace.append("gate_approved", data)
    assert verify(run.root, "r1") == []


def test_one_answer_is_recorded_however_many_look_while_people_disagree(tmp_path: Path) -> None:
    """Two people and four processes at once: one event, and it is what a sentinel says."""
    for number in range(10):
        run = Run(tmp_path, name=f"r{number}")
        run.do("it01_investigate")
        gate = view(run)
        start = threading.Barrier(6)

        def person(path: Path, start: threading.Barrier = start) -> None:
            start.wait()
            path.touch()

        def process(run: Run = run, start: threading.Barrier = start) -> None:
            own = Run(run.root, name=run.name)
            start.wait()
            while own.advance().state.gates["it01_confirm"].status == "requested":
                pass

        with ThreadPoolExecutor(6) as pool:
            jobs = [pool.submit(person, path) for path in (gate.approve, gate.reject)]
            jobs += [pool.submit(process) for _ in range(4)]
        for job in jobs:
            job.result()
        answers = [e for e in run.trace.events() if e.type in ("gate_approved", "gate_rejected")]
        assert len(answers) == 1
        assert verify(run.root, run.name) == []


def test_both_at_once_is_a_no(run: Run) -> None:
    gate = view(run)
    gate.approve.touch()
    gate.reject.write_text("not yet")
    known = run.advance().state.gates["it01_confirm"]
    assert (known.status, known.reason) == ("rejected", "not yet")


def test_a_changed_file_cannot_be_approved_but_sent_back(run: Run) -> None:
    gate = view(run)
    shown = run.folder / "it01/investigate/artifacts/investigate.md"
    shown.write_text("edited\n")
    gate.approve.touch()
    with pytest.raises(EopError, match=r"investigate\.md") as caught:
        run.advance()
    assert f"reject (gates/r1/{gate.reject.name})" in (caught.value.hint or "")
    gate.reject.write_text("somebody edited it")
    run.advance()
    run.do("it01_investigate_r2", text="anew\n")
    again = view(run)
    assert again.instance.revision == 2
    assert "no longer as shown" in again.request.read_text()


def test_a_reason_that_changes_later_is_found(run: Run) -> None:
    gate = view(run)
    run.touch("approved", "fine")
    gate.approve.write_text("fine, said nobody")
    assert verify(run.root, "r1") == [
        f"gate it01_confirm is approved, and its sentinel gives another reason now: "
        f"{gate.approve.name}"
    ]
