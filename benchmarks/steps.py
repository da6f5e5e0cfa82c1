"""Training steps: a batch gathered and padded, negatives drawn, forward, backward, AdamW."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks import child
from benchmarks.grid import environment
from benchmarks.measure import peak_mib, repeated
from benchmarks.shapes import shape
from benchmarks.table import Table, number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.child import Row
    from benchmarks.grid import Grid

_NOTE = (
    "A step is a batch of 128 users: histories gathered and padded, 128 negatives drawn for each "
    "token, forward, backward, AdamW. CPU seconds are those of all threads, the median of the "
    "repeats and the best. Peak memory is that of the whole process; Python, torch and hstu alone "
    "take what stands under 'at start', and torch loads about 170 MiB more for its optimisers."
)


def rows(grid: Grid) -> Iterator[Row]:
    """Measure every case."""
    for case in grid.cases():
        yield child.run(__name__, case, environment=environment(case))


def measure(case: Row) -> Row:
    """One case, in this process."""
    from benchmarks import workload

    start_mib = peak_mib()
    chosen = shape(case["model"], quick=case["quick"])
    made = workload.events(chosen, chosen.batch_users, case["lengths"])
    rows = workload.training_rows(made, chosen.history_length)
    step = workload.stepper(workload.network(chosen), rows)
    users = list(range(len(rows)))
    timing = repeated(lambda: step(users), repeats=case["repeats"], budget_s=case["budget_s"])
    tokens = len(made.items)
    return {
        **timing,
        "users": len(users),
        "tokens": tokens,
        "tokens_per_cpu_s": tokens / timing["cpu_s"],
        "start_mib": start_mib,
        "peak_mib": peak_mib(),
        "data": made.digest,
    }


def table(rows: Sequence[Row]) -> Table:
    """The figures of all cases."""
    columns = [
        *("model", "lengths", "kernels", "threads", "tokens"),
        *("CPU s/step", "best", "wall s/step", "tokens/CPU s", "MiB at start", "peak MiB"),
    ]
    cells = [
        [
            *(shape(row["model"], quick=False).name, row["lengths"], row["kernels"]),
            *(str(row["threads"]), f"{row['tokens']:,}", number(row["cpu_s"])),
            *(number(row["cpu_s_best"]), number(row["wall_s"])),
            *(number(row[key]) for key in ("tokens_per_cpu_s", "start_mib", "peak_mib")),
        ]
        for row in rows
    ]
    return Table("Training step", _NOTE, columns, cells)
