"""The trace under many writers, dying writers, and editors."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from research_run import Run, research

from eop.core.errors import EopError, ExitCode
from eop.protocol.model import Budget, Plan
from eop.runtime.events import Event, decode, encode
from eop.runtime.reduce import Refused, reduce
from eop.runtime.trace import Trace
from eop.runtime.trace_files import EventFiles

if TYPE_CHECKING:
    from pathlib import Path

WRITERS, EACH = 8, 6
FORK = multiprocessing.get_context("fork")


def independent() -> Plan:
    """Phases that need nothing: whoever comes first, every writer's events are legal."""
    first = research().phases[0]
    phases = tuple(
        replace(first, id=f"w{writer}_n{turn}", line=1 + writer * EACH + turn, outputs=())
        for writer in range(WRITERS)
        for turn in range(EACH)
    )
    return research(budget=Budget(), gates=(), loop=None, phases=phases)


def write_all(directory: Path, writer: int) -> None:
    """Enter and leave every node of one writer; go on where a killed one stopped."""
    trace = Trace(directory, independent())
    for turn in range(EACH):
        key = f"it01_w{writer}_n{turn}"
        node = trace.state().nodes.get(key)
        if node is not None and node.final:
            continue
        if node is None:
            reserve = {"actions": 10, "wall_s": 60}
            trace.append("node_entered", {"node": key, "attempt": 1, "reserve": reserve})
        trace.append(
            "node_left",
            {
                "node": key,
                "attempt": 1,
                "outcome": "completed",
                "reason": "",
                "artifacts": [],
                "facts": {},
                "usage": {"actions": 1, "wall_s": 0.5},
            },
        )


def spawn(directory: Path) -> list[multiprocessing.process.BaseProcess]:
    writers = [FORK.Process(target=write_all, args=(directory, n)) for n in range(WRITERS)]
    for writer in writers:
        writer.start()
    return list(writers)


def assert_whole(directory: Path) -> None:
    trace = Trace(directory, independent())
    assert len(trace.events()) == 1 + 2 * WRITERS * EACH
    assert trace.state().spent.actions == WRITERS * EACH


def test_many_processes_lose_and_tear_nothing(tmp_path: Path) -> None:
    directory = Run(tmp_path, independent()).trace.directory
    for writer in spawn(directory):
        writer.join(60)
        assert writer.exitcode == 0
    assert_whole(directory)
    assert not list(directory.glob(".event.*"))


def test_killed_writers_leave_a_whole_trace(tmp_path: Path) -> None:
    directory = Run(tmp_path, independent()).trace.directory
    rng = random.Random(3)
    for _ in range(4):
        writers = spawn(directory)
        time.sleep(rng.uniform(0.05, 0.2))
        for writer in writers:
            if writer.pid is not None and writer.is_alive():
                os.kill(writer.pid, signal.SIGKILL)
            writer.join()
        Trace(directory, independent()).state()
    (directory / ".event.left.tmp").write_bytes(b'{"torn')
    for writer in spawn(directory):
        writer.join(60)
        assert writer.exitcode == 0
    assert_whole(directory)


def test_a_slow_reader_sees_the_events_of_others(tmp_path: Path) -> None:
    run = Run(tmp_path)
    reader = Trace(run.trace.directory, run.plan)
    assert reader.state().seq == 1
    run.do("it01_investigate")
    assert reader.state() == run.trace.state()
    assert reader.events() == run.trace.events()


def test_the_loser_of_a_race_is_judged_again(tmp_path: Path) -> None:
    run = Run(tmp_path)
    late = Trace(run.trace.directory, run.plan)
    late.state()
    run.enter("it01_investigate")
    reserve = {"actions": 10, "wall_s": 60}
    with pytest.raises(Refused, match="is open"):
        late.append("node_entered", {"node": "it01_investigate", "attempt": 1, "reserve": reserve})


def test_a_link_answered_twice_is_won(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(tmp_path)
    link = os.link

    def twice(source: Path, target: Path) -> None:
        link(source, target)
        link(source, target)

    monkeypatch.setattr(os, "link", twice)
    run.enter("it01_investigate")
    assert len(run.trace.events()) == 2


def test_an_append_gives_up_at_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(tmp_path)
    monkeypatch.setattr("eop.runtime.trace._PAUSE_S", 0.0)
    monkeypatch.setattr(EventFiles, "publish", lambda self, seq, content: False)
    with pytest.raises(EopError) as caught:
        run.enter("it01_investigate")
    assert caught.value.exit_code is ExitCode.LOCKED


def test_an_empty_trace_has_no_state(tmp_path: Path) -> None:
    trace = Trace(tmp_path / "runs/r/trace", research())
    assert trace.events() == ()
    with pytest.raises(EopError, match="has not started"):
        trace.state()
    with pytest.raises(Refused, match="begins with run_started"):
        trace.append("run_ended", {"reason": "failed"})


def _edit(path: Path, old: str, new: str) -> None:
    content = path.read_text()
    assert old in content
    path.chmod(0o644)
    path.write_text(content.replace(old, new))


FAULTS = {
    "edited": lambda d: _edit(d / "00000002.json", '"actions":10', '"actions":11'),
    "edited last": lambda d: _edit(d / "00000003.json", '"actions":3', '"actions":2'),
    "reformatted": lambda d: _edit(d / "00000003.json", '"seq":3', '"seq": 3'),
    "torn": lambda d: _edit(d / "00000003.json", "}", ""),
    "removed": lambda d: (d / "00000002.json").unlink(),
    "first removed": lambda d: (d / "00000001.json").unlink(),
    "inserted": lambda d: (d / "00000004.json").write_bytes((d / "00000003.json").read_bytes()),
    "far ahead": lambda d: (d / "00000009.json").write_bytes((d / "00000003.json").read_bytes()),
    "not an object": lambda d: (d / "00000004.json").write_text("[]"),
    "a folder": lambda d: (d / "00000004.json").mkdir(),
    "a pipe": lambda d: os.mkfifo(d / "00000004.json"),
    "a loop of links": lambda d: (d / "00000004.json").symlink_to("00000004.json"),
    "infinite": lambda d: (d / "00000004.json").write_text('{"seq":Infinity}'),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_trace_names_its_file(tmp_path: Path, fault: str) -> None:
    run = Run(tmp_path)
    run.do("it01_investigate")
    FAULTS[fault](run.trace.directory)
    fresh = Trace(run.trace.directory, run.plan)
    with pytest.raises(EopError, match=r"trace is broken at 0000000\d\.json") as caught:
        fresh.state()
    assert caught.value.exit_code is ExitCode.STATE
    assert caught.value.where is not None


def test_swapped_events_are_found(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.do("it01_investigate")
    second, third = (run.trace.directory / f"0000000{n}.json" for n in (2, 3))
    content = second.read_bytes()
    third.rename(second)
    third.write_bytes(content)
    with pytest.raises(EopError, match="it says that it is event 3"):
        Trace(run.trace.directory, run.plan).state()


def test_a_chain_rewritten_from_the_edit_on_is_judged_by_its_content(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.do("it01_investigate")
    first, second, _ = run.trace.events()
    forged = Event(2, "loop_continued", {"iteration": 2}, first.digest, second.time, second.host)
    with pytest.raises(Refused, match="may not begin"):
        reduce(run.plan, reduce(run.plan, None, first), forged)


def test_encoding_is_exact(tmp_path: Path) -> None:
    event = Run(tmp_path).trace.events()[0]
    assert decode(encode(event)) == event
    value = json.loads(encode(event))
    with pytest.raises(ValueError, match="exactly the keys"):
        decode(json.dumps({**value, "note": 1}).encode())
    with pytest.raises(ValueError, match="'seq' is not of type int"):
        decode(json.dumps({**value, "seq": "1"}).encode())
