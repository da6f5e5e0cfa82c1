"""Where the CPU seconds of a training step go, by torch's profiler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks import child
from benchmarks.grid import environment
from benchmarks.shapes import shape
from benchmarks.table import Table, number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.child import Row
    from benchmarks.grid import Grid

_NOTE = (
    "Three steps at full length, one thread. Self time leaves out what an operation calls, so that "
    "shares add up; it is time by the clock, which other work on the machine lengthens. Compiled "
    "kernels stand under the names of their autograd functions."
)
_STEPS = 3
_TOP = 12


def rows(grid: Grid) -> Iterator[Row]:
    """Profile each model."""
    for model in grid.models:
        case = {"model": model, "kernels": "auto", "threads": 1, "quick": grid.quick}
        yield child.run(__name__, case, environment=environment(case))


def measure(case: Row) -> Row:
    """One model, in this process."""
    from torch.profiler import ProfilerActivity, profile

    from benchmarks import workload

    chosen = shape(case["model"], quick=case["quick"])
    made = workload.events(chosen, chosen.batch_users, "full")
    rows = workload.training_rows(made, chosen.history_length)
    step, users = workload.stepper(workload.network(chosen), rows), list(range(len(rows)))
    step(users)
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        for _ in range(_STEPS):
            step(users)
    found = sorted(profiled.key_averages(), key=lambda op: -op.self_cpu_time_total)
    total = sum(op.self_cpu_time_total for op in found)
    top = [
        {
            "operation": op.key,
            "calls": op.count / _STEPS,
            "ms": op.self_cpu_time_total / 1e3 / _STEPS,
            "share": op.self_cpu_time_total / total,
        }
        for op in found[:_TOP]
    ]
    return {"total_ms": total / 1e3 / _STEPS, "top": top}


def table(rows: Sequence[Row]) -> Table:
    """The top operations of each model."""
    columns = ["model", "operation", "calls/step", "self ms/step", "share %"]
    cells = [
        [
            *(shape(row["model"], quick=False).name, op["operation"]),
            *(number(op["calls"]), number(op["ms"]), number(100 * op["share"])),
        ]
        for row in rows
        for op in row["top"]
    ]
    return Table("Profile of a training step", _NOTE, columns, cells)
