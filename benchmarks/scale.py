"""Ten times the users and items of MovieLens-1M: what grows, and by how much."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle
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
    "BASE, lengths of MovieLens-1M, one thread: eight training steps, each on other users, then "
    "the evaluation of 5 % of the users. Data is what the arrays of all events take; an epoch is "
    "the step times the number of steps that it has. Peaks hold Python, torch and the data."
)
_USERS, _ITEMS, _FACTORS = 6040, 3800, (1, 10)
_STEPS = 8
_EVALUATED = 20
"""One user of so many is evaluated."""
FIGURES = {
    "users": "users",
    "items": "items",
    "data_mib": "MiB of data",
    "step_cpu_s": "CPU s/step",
    "epoch_cpu_s": "CPU s/epoch",
    "training_peak_mib": "peak MiB, training",
    "evaluated": "users evaluated",
    "evaluation_cpu_s": "CPU s, evaluation",
    "users_per_cpu_s": "users/CPU s, evaluation",
    "peak_mib": "peak MiB, all",
}


def rows(grid: Grid) -> Iterator[Row]:
    """Measure each size."""
    for factor in _FACTORS:
        case = {"factor": factor, "threads": 1, "quick": grid.quick}
        yield child.run(__name__, case, environment=environment(case))


def measure(case: Row) -> Row:
    """One size, in this process: first training, then evaluation."""
    from benchmarks import workload

    reduction = 50 if case["quick"] else 1
    users, items = (case["factor"] * size // reduction for size in (_USERS, _ITEMS))
    chosen = replace(shape("base", quick=case["quick"]), items=items)
    made = workload.events(chosen, users, "ml1m")
    rows = workload.training_rows(made, chosen.history_length)
    model = workload.network(chosen)
    step, size = workload.stepper(model, rows), chosen.batch_users
    batches = cycle(list(range(at, at + size)) for at in range(0, users - size + 1, size))
    training = repeated(lambda: step(next(batches)), repeats=_STEPS, budget_s=120)
    training_peak = peak_mib()
    asked = workload.Evaluation(model, made.first(users // _EVALUATED))
    evaluation = repeated(asked.ranks, repeats=2, budget_s=0)
    return {
        "users": users,
        "items": items,
        "data_mib": made.mib,
        "step_cpu_s": training["cpu_s"],
        "epoch_cpu_s": training["cpu_s"] * -(-users // size),
        "training_peak_mib": training_peak,
        "evaluated": len(asked),
        "evaluation_cpu_s": evaluation["cpu_s"],
        "users_per_cpu_s": len(asked) / evaluation["cpu_s"],
        "peak_mib": peak_mib(),
    }


def table(rows: Sequence[Row]) -> Table:
    """Every figure at every size, and how much it grew from the first to the last."""
    columns = ["figure", *(f"{row['factor']}x" for row in rows), "growth"]
    cells = [
        [name, *(_cell(row[key]) for row in rows), number(rows[-1][key] / rows[0][key])]
        for key, name in FIGURES.items()
    ]
    return Table("Ten times MovieLens-1M", _NOTE, columns, cells)


def _cell(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else number(value)
