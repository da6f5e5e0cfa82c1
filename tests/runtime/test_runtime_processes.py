"""Sixteen processes append and pack, some are killed, and somebody reads all the while."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from research_run import Run, research

from eop.protocol.model import Amount, Budget, Loop, Plan
from eop.runtime.due import due
from eop.runtime.reduce import Refused
from eop.runtime.state import OPEN
from eop.runtime.trace import Trace, finished

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.process import BaseProcess
    from pathlib import Path

WRITERS, TURNS = 16, 3
FORK = multiprocessing.get_context("fork")


def busy() -> Plan:
    """Each turn a phase of each writer, all at once, after one phase that opens the turn."""
    first = replace(research().phases[0], outputs=())
    phases = [replace(first, id="go", line=1)]
    for writer in range(WRITERS):
        phases.append(replace(first, id=f"w{writer}", line=2 + writer, needs=("go",)))
    after = tuple(phase.id for phase in phases[1:])
    loop = Loop("again", 99, after, "go", TURNS)
    return research(budget=Budget(), gates=(), loop=loop, phases=tuple(phases))


def write(directory: Path, writer: int, accepted: Path) -> None:
    """Do a writer's nodes, and what is due, until the run has ended; note what was accepted."""
    trace = Trace(directory, busy())
    with accepted.open("a") as log:
        while not (state := trace.state()).ended:
            found = _next_of(trace, writer)
            if found is None:
                time.sleep(0.005)
                continue
            try:
                seq = trace.append(*found).seq
            except Refused:
                assert trace.state().seq > state.seq, "refused although nobody was faster"
                continue
            print(seq, file=log, flush=True)
            trace.compact()


def _next_of(trace: Trace, writer: int) -> tuple[str, dict[str, object]] | None:
    state = trace.state()
    for step in ("go", f"w{writer}") if writer == 0 else (f"w{writer}",):
        node = state.node(state.current(step, state.iteration))
        if node is None and (step == "go" or _has_gone(trace)):
            return "node_entered", {**_attempt(trace, step), "reserve": _amount(10, 60)}
        if node is not None and node.status == OPEN:
            left = {"outcome": "completed", "reason": "", "artifacts": []}
            return "node_left", {
                **_attempt(trace, step),
                **left,
                "facts": {},
                "usage": _amount(1, 0.5),
            }
    return due(trace.plan, state)


def _has_gone(trace: Trace) -> bool:
    node = trace.state().node(trace.state().current("go", trace.state().iteration))
    return node is not None and node.completed


def _attempt(trace: Trace, step: str) -> dict[str, object]:
    return {"node": f"it{trace.state().iteration:02d}_{step}", "attempt": 1}


def _amount(actions: int, wall_s: float) -> dict[str, float]:
    return {**dict.fromkeys(Amount._fields, 0), "actions": actions, "wall_s": wall_s}


def watch(directory: Path) -> None:
    """Read anew and read on; what was there once is there ever after, whole."""
    reading_on = Trace(directory, busy())
    seen = reading_on.events()
    while seen[-1].type != "run_ended":
        anew = Trace(directory, busy()).events()
        assert anew[: len(seen)] == seen
        seen = reading_on.events()
        assert seen[: len(anew)] == anew
        time.sleep(0.01)


@pytest.fixture
def crowd(tmp_path: Path) -> Iterator[Crowd]:
    crowd = Crowd(tmp_path)
    yield crowd
    for process in crowd.writers:
        process.kill()
        process.join()


class Crowd:
    """The writers of a run and its reader."""

    def __init__(self, root: Path) -> None:
        self.run = Run(root, busy())
        self.root = root
        self.reader = FORK.Process(target=watch, args=(self.run.trace.directory,))
        self.reader.start()
        self.writers: list[BaseProcess] = [self.writer(number) for number in range(WRITERS)]

    def writer(self, number: int) -> BaseProcess:
        log = self.root / f"accepted-{number}"
        process = FORK.Process(target=write, args=(self.run.trace.directory, number, log))
        process.start()
        return process

    def ends(self) -> None:
        for process in (*self.writers, self.reader):
            process.join(120)
            assert process.exitcode == 0

    def accepted(self) -> Counter[int]:
        lines = [path.read_text().split() for path in self.root.glob("accepted-*")]
        return Counter(int(seq) for line in lines for seq in line)

    def assert_whole(self) -> None:
        trace = Trace(self.run.trace.directory, busy())
        events = trace.events()
        kinds = Counter(event.type for event in events)
        nodes = TURNS * (WRITERS + 1)
        assert kinds == {
            "run_started": 1,
            "node_entered": nodes,
            "node_left": nodes,
            "loop_continued": TURNS - 1,
            "run_ended": 1,
        }
        assert trace.state().spent.actions == nodes
        trace.compact()
        packs = [pack.name for pack in finished(events)]
        files = sorted(path.name for path in trace.directory.iterdir())
        assert [name for name in files if not name.startswith(".")] == packs
        assert Trace(trace.directory, busy()).events() == events


def test_every_event_is_accepted_once(crowd: Crowd) -> None:
    crowd.ends()
    crowd.assert_whole()
    first_is_ours = 1
    expected = range(first_is_ours + 1, len(crowd.run.trace.events()) + 1)
    assert crowd.accepted() == Counter(expected)
    assert not list(crowd.run.trace.directory.glob(".event.*"))


def test_the_killed_lose_and_double_nothing(crowd: Crowd) -> None:
    rng = random.Random(5)
    killed = 0
    while not crowd.run.trace.state().ended:
        time.sleep(rng.uniform(0, 0.05))
        number = rng.randrange(WRITERS)
        victim = crowd.writers[number]
        if victim.pid is not None and victim.is_alive():
            os.kill(victim.pid, signal.SIGKILL)
            victim.join()
            killed += victim.exitcode == -signal.SIGKILL
            crowd.writers[number] = crowd.writer(number)
    crowd.ends()
    assert killed > 3
    crowd.assert_whole()
    assert max(crowd.accepted().values()) == 1
