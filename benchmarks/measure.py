"""CPU seconds, wall seconds and peak memory of the running process."""

from __future__ import annotations

import resource
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_STATUS = Path("/proc/self/status")


def repeated(work: Callable[[], object], *, repeats: int, budget_s: float) -> dict[str, Any]:
    """Time ``work`` after a warm-up call, up to ``repeats`` times.

    It ends earlier, after the second time at the earliest, when ``budget_s`` wall seconds are over.
    CPU seconds are those of all threads of this process.
    """
    work()
    cpu: list[float] = []
    wall: list[float] = []
    while len(cpu) < repeats and (len(cpu) < 2 or sum(wall) < budget_s):
        began, cpu_began = time.perf_counter(), time.process_time()
        work()
        cpu.append(time.process_time() - cpu_began)
        wall.append(time.perf_counter() - began)
    return {
        "repeats": len(cpu),
        "cpu_s": statistics.median(cpu),
        "cpu_s_best": min(cpu),
        "wall_s": statistics.median(wall),
    }


def peak_mib() -> float:
    """The most memory, in MiB, that this process has held at once."""
    if _STATUS.exists():
        # What getrusage says includes the memory of the parent that started this process.
        lines = dict(line.split(":", 1) for line in _STATUS.read_text().splitlines())
        return int(lines["VmHWM"].split()[0]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)
