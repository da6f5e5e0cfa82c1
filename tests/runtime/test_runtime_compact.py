"""Packing finished iterations: the same events, whatever dies, whoever is at work beside it."""

from __future__ import annotations

import multiprocessing
import os
import signal
from typing import TYPE_CHECKING

import pytest
from research_run import Run

from eop.core.errors import EopError
from eop.runtime.events import encode
from eop.runtime.trace import Trace, finished
from eop.runtime.trace_files import EventFiles, Pack
from eop.runtime.verify import verify

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


FORK = multiprocessing.get_context("fork")


def two_turns(root: Path) -> Run:
    """A run that has ended, after two iterations of two branches each."""
    run = Run(root)
    run.to_branches()
    for iteration in (1, 2):
        if iteration == 2:
            run.do("it02_propose")
            run.touch()
        run.branch("p01", iteration)
        run.branch("p02", iteration)
        run.do(f"it{iteration:02d}_promote")
        run.touch()
    assert run.trace.state().ended == "completed"
    return run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return two_turns(tmp_path)


def names(run: Run) -> list[str]:
    return sorted(path.name for path in run.trace.directory.iterdir())


def fresh(run: Run) -> Trace:
    return Trace(run.trace.directory, run.plan)


def test_finished_iterations_become_a_file_each(run: Run) -> None:
    events, state = run.trace.events(), run.trace.state()
    turn = next(event.seq for event in events if event.type == "loop_continued")
    run.trace.compact()
    packs = [Pack(1, turn), Pack(turn + 1, len(events))]
    assert names(run) == [pack.name for pack in packs]
    assert fresh(run).events() == events and fresh(run).state() == state
    lines = (run.trace.directory / packs[0].name).read_bytes().splitlines()
    assert lines == [encode(event) for event in events[:turn]]
    assert run.trace.events() == events
    assert verify(run.root, run.name) == []


def test_an_iteration_at_work_stays_as_it_is(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.to_branches()
    before = names(run)
    run.trace.compact()
    assert names(run) == before


def test_a_run_goes_on_from_packs(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.to_second_turn()
    late = fresh(run)
    late.state()
    fresh(run).compact()
    run.do("it02_propose")
    run.touch()
    assert late.events() == fresh(run).events() == run.trace.events()
    assert len(names(run)) > 1


def test_packing_twice_changes_nothing(run: Run) -> None:
    run.trace.compact()
    before = {name: (run.trace.directory / name).stat().st_mtime_ns for name in names(run)}
    fresh(run).compact()
    assert before == {name: (run.trace.directory / name).stat().st_mtime_ns for name in names(run)}


def test_a_reader_in_the_middle_of_a_pack(run: Run) -> None:
    """Who has read some of the single files goes on in the pack, and who slept sees no second."""
    events = run.trace.events()
    kept = {path.name: path.read_bytes() for path in run.trace.directory.iterdir()}
    for known in (1, 5, len(events) - 1):
        for path in list(run.trace.directory.iterdir()):
            path.unlink()
        for name in sorted(kept)[:known]:
            (run.trace.directory / name).write_bytes(kept[name])
        reader = fresh(run)
        assert reader.events() == events[:known]
        for name, content in kept.items():
            (run.trace.directory / name).write_bytes(content)
        fresh(run).compact()
        assert reader.events() == events


def test_a_writer_that_slept_takes_its_event_back(run: Run) -> None:
    """Its number is free again as a name, and taken all the same."""
    run.trace.compact()
    files = EventFiles(run.trace.directory)
    assert not files.publish(3, b"late")
    assert not files.single(3).exists()


def test_what_a_dead_late_writer_left_is_nothing_and_is_removed(run: Run) -> None:
    events = run.trace.events()
    run.trace.compact()
    left = run.trace.directory / "00000003.json"
    left.write_bytes(b"late")
    assert fresh(run).events() == events
    fresh(run).compact()
    assert not left.exists()


def test_a_pack_of_other_content_removes_nothing(run: Run) -> None:
    pack = finished(run.trace.events())[0]
    before = names(run)
    (run.trace.directory / pack.name).write_bytes(b"{}\n" * pack.last)
    with pytest.raises(EopError, match="trace is broken at 00000001-") as caught:
        run.trace.compact()
    assert caught.value.code == "EOP731"
    assert names(run) == sorted([*before, pack.name])


def _spoil(change: Callable[[list[bytes]], list[bytes]]) -> Callable[[bytes], bytes]:
    return lambda content: b"".join(change(content.splitlines(keepends=True)))


DAMAGES: dict[str, tuple[Callable[[bytes], bytes], int]] = {
    "a line lost": (_spoil(lambda lines: [*lines[:4], *lines[5:]]), 5),
    "the first lost": (_spoil(lambda lines: lines[1:]), 1),
    "the last lost": (_spoil(lambda lines: lines[:-1]), 0),
    "two swapped": (_spoil(lambda lines: [lines[1], lines[0], *lines[2:]]), 1),
    "a line twice": (_spoil(lambda lines: [*lines[:3], *lines[2:]]), 4),
    "the last twice": (_spoil(lambda lines: [*lines, lines[-1]]), 0),
    "torn": (lambda content: content[:-1], 0),
    "torn within": (lambda content: content[:-30], 0),
    "more": (lambda content: content + b"{", 0),
    "edited": (lambda content: content.replace(b'"actions":3', b'"actions":2', 1), 3),
    "empty": (lambda content: b"", 1),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_pack_is_named_with_the_event(run: Run, damage: str) -> None:
    run.trace.compact()
    path = run.trace.directory / names(run)[0]
    spoil, number = DAMAGES[damage]
    path.chmod(0o644)
    path.write_bytes(spoil(path.read_bytes()))
    place = rf"trace is broken at {path.name}, event {number or int(path.name[9:17])}: "
    with pytest.raises(EopError, match=place) as caught:
        fresh(run).events()
    assert caught.value.code == "EOP731" and caught.value.where is not None
    assert caught.value.where.path == str(path)


def test_a_missing_pack_is_a_gap(run: Run) -> None:
    run.trace.compact()
    (run.trace.directory / names(run)[0]).unlink()
    with pytest.raises(EopError, match=r"broken at 00000001\.json: the event is missing"):
        fresh(run).events()


CALLS = ("open", "write", "fsync", "link", "unlink", "close")


def _die_at(call: int, *, before: bool) -> None:
    """Let the process be killed at its ``call``-th system call of those that matter."""
    made = 0

    def wrapped(original: Callable[..., object]) -> Callable[..., object]:
        def counted(*arguments: object, **more: object) -> object:
            nonlocal made
            made += 1
            if made == call and before:
                os.kill(os.getpid(), signal.SIGKILL)
            try:
                return original(*arguments, **more)
            finally:
                if made == call:
                    os.kill(os.getpid(), signal.SIGKILL)

        return counted

    for name in CALLS:
        setattr(os, name, wrapped(getattr(os, name)))


def _killed(work: Callable[[], object], call: int, *, before: bool) -> bool:
    """Do ``work`` in a process that dies at that call; say whether it came to it."""

    def target() -> None:
        _die_at(call, before=before)
        work()
        os._exit(0)

    process = FORK.Process(target=target)
    process.start()
    process.join()
    return process.exitcode == -signal.SIGKILL


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_packing_may_be_killed_anywhere(run: Run, before: bool) -> None:
    events = run.trace.events()
    packs = [pack.name for pack in finished(events)]
    kept = {path.name: path.read_bytes() for path in run.trace.directory.iterdir()}
    # Up to the first pack every call; then the removal of its files, which are all alike.
    for call in (*range(1, 14), 20, 30, 2 * len(events)):
        for path in list(run.trace.directory.iterdir()):
            path.unlink()
        for name, content in kept.items():
            (run.trace.directory / name).write_bytes(content)
        came_to_it = _killed(run.trace.compact, call, before=before)
        assert came_to_it == (call < 2 * len(events))
        assert fresh(run).events() == events
        run.trace.compact()
        assert [name for name in names(run) if not name.startswith(".")] == packs
    assert fresh(run).events() == events


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_appending_may_be_killed_anywhere(tmp_path: Path, before: bool) -> None:
    """Either the event is there or it is not; whoever comes next goes on."""
    call, there = 0, set()
    while True:
        call += 1
        run = Run(tmp_path / str(call))
        came_to_it = _killed(lambda run=run: run.enter("it01_investigate"), call, before=before)
        seen = [event.type for event in fresh(run).events()]
        assert seen in (["run_started"], ["run_started", "node_entered"])
        there.add(len(seen))
        assert run.do("it01_investigate")["outcome"] == "completed"
        if not came_to_it:
            break
    assert there == {1, 2}
