"""Full-corpus evaluation: histories padded, scored over all items, the target's rank counted."""

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
    "512 users, every item of the corpus scored, the target's rank among the items that the user "
    "has not seen. In one process: the sealed evaluation adds a pipe between worker and judge."
)
_BATCHES = 4


def rows(grid: Grid) -> Iterator[Row]:
    """Measure every case."""
    for case in grid.cases():
        yield child.run(__name__, case, environment=environment(case))


def measure(case: Row) -> Row:
    """One case, in this process."""
    from benchmarks import workload

    chosen = shape(case["model"], quick=case["quick"])
    made = workload.events(chosen, _BATCHES * chosen.batch_users, case["lengths"])
    asked = workload.Evaluation(workload.network(chosen), made)
    timing = repeated(asked.ranks, repeats=case["repeats"], budget_s=case["budget_s"])
    return {
        **timing,
        "users": len(asked),
        "users_per_cpu_s": len(asked) / timing["cpu_s"],
        "peak_mib": peak_mib(),
        "data": made.digest,
    }


def table(rows: Sequence[Row]) -> Table:
    """The figures of all cases."""
    columns = ["model", "lengths", "kernels", "threads", "users/CPU s", "best", "peak MiB"]
    cells = [
        [
            *(shape(row["model"], quick=False).name, row["lengths"], row["kernels"]),
            *(str(row["threads"]), number(row["users_per_cpu_s"])),
            *(number(row["users"] / row["cpu_s_best"]), number(row["peak_mib"])),
        ]
        for row in rows
    ]
    return Table("Evaluation", _NOTE, columns, cells)
