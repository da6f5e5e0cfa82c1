"""What a user of `eop` waits for: checking a protocol, folding a trace, starting the program."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import child
from benchmarks.table import Table, number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.child import Row
    from benchmarks.grid import Grid

_NOTE = "CPU seconds, those of child processes included; the best of three."
_PROTOCOL = child.ROOT / "config" / "protocols" / "hstu-evolve.eop.md"
_EVENTS = 400


def rows(grid: Grid) -> Iterator[Row]:
    """Measure every figure."""
    yield child.run(__name__, {"quick": grid.quick}, environment={})


def measure(case: Row) -> Row:
    """All figures, in this process."""
    from eop.protocol.compiler import load

    events, fold_s = _trace_fold(20 if case["quick"] else _EVENTS)
    return {
        "check_s": best(lambda: load(_PROTOCOL, root=child.ROOT)),
        "start_s": best(_start_of_eop),
        "events": events,
        "fold_s": fold_s,
    }


def table(rows: Sequence[Row]) -> Table:
    """A line for each figure."""
    (row,) = rows
    cells = [
        ["protocol hstu-evolve: parse and check", number(row["check_s"]), ""],
        ["`eop --help`: start of the command line", number(row["start_s"]), ""],
        [
            f"trace: fold of {row['events']} events",
            number(row["fold_s"]),
            f"{number(row['events'] / row['fold_s'])} events/CPU s",
        ],
    ]
    return Table("Harness", _NOTE, ["what", "CPU s", "that is"], cells)


def best(work: Callable[[], object]) -> float:
    """The least CPU seconds of three calls."""
    return min(cpu_seconds(work) for _ in range(3))


def cpu_seconds(work: Callable[[], object]) -> float:
    """CPU seconds of a call, those of its child processes included."""
    before = time.process_time() + _children()
    work()
    return time.process_time() + _children() - before


def _children() -> float:
    """CPU seconds of finished child processes so far."""
    times = os.times()
    return times.children_user + times.children_system


def _start_of_eop() -> None:
    subprocess.run([sys.executable, "-m", "eop.cli", "--help"], capture_output=True, check=True)


def _trace_fold(wanted: int) -> tuple[int, float]:
    """Events of a trace of abandoned attempts, and the seconds to fold it, read anew from disk."""
    from eop.protocol.compiler import load
    from eop.runtime.trace import Trace

    plan = load(_PROTOCOL, root=child.ROOT)
    phase = plan.phase("investigate_code")
    actions = phase.budget.actions or 0
    reserve = {"actions": actions, "wall_s": float(phase.budget.wall_s or 0)}
    attempts = min(wanted // 2, int((plan.budget.actions or 0) / max(actions, 1)) - 1)
    digests = {"plan": plan.digest, "config": "0" * 64, "snapshot": "0" * 64}
    variables = {name: kind["default"] for name, kind in plan.variables.items()}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "runs" / "bench" / "trace"
        trace = Trace(folder, plan)
        trace.append("run_started", {"run": "bench", **digests, "variables": variables})
        for attempt in range(1, attempts + 1):
            node = {"node": "it01_investigate_code", "attempt": attempt}
            trace.append("node_entered", {**node, "reserve": reserve})
            trace.append("node_abandoned", {**node, "reason": "bench"})
        return len(trace.events()), best(lambda: Trace(folder, plan).state())
