"""This project's HSTU beside RecTools': the same events, one after the other, in one call."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks import child, evaluation, steps
from benchmarks.grid import environment
from benchmarks.shapes import shape
from benchmarks.table import Table, number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from benchmarks.child import Row
    from benchmarks.grid import Grid

VERSION = "0.19.0"
FOLDER = ".bench/rectools"
PYTHON = child.ROOT / FOLDER / "bin" / "python"
_INSTALL = (
    f"python3 -m venv {FOLDER} && "
    f"{FOLDER}/bin/pip install torch==2.13.0 'rectools[torch]=={VERSION}'"
)
_MODULE = "benchmarks.peers.rectools"
_TOPICS = {"steps": steps, "evaluation": evaluation}
_NOTE = (
    f"RecTools {VERSION}: `HSTUModel` with sampled softmax, 128 negatives a token, cosine, "
    "temperature 0.05, Adam; its network, loss, optimiser and ranker are called directly. Its data "
    "loader, trainer and the drawing of its negatives are left out, while ours gathers, pads and "
    "draws within the time. It pads every history to 200; its evaluation finds the top 10 instead "
    "of the target's rank. Both take the same events; initial weights differ. A ratio above 1 "
    "is in favour of this project."
)


@dataclass(frozen=True)
class Comparison:
    """The topic, with the Python that has RecTools."""

    python: Path

    def require(self) -> None:
        """Raise ``BenchmarkError``, with what to do, when RecTools cannot be imported."""
        if self.python.is_file():
            command = [str(self.python), "-c", "import rectools.models, torch"]
            if not subprocess.run(command, capture_output=True, check=False).returncode:
                return
        raise child.BenchmarkError(f"no rectools for {self.python}; install it with: {_INSTALL}")

    def rows(self, grid: Grid) -> Iterator[Row]:
        """Each case with ``ours`` and ``theirs``. Raises ``BenchmarkError`` if the data differ."""
        for topic, module in _TOPICS.items():
            for case in grid.cases(kernels=False):
                variables = environment(case)
                ours = child.run(module.__name__, case, environment=variables)
                asked = {**case, "topic": topic, "users": ours["users"]}
                theirs = child.run(_MODULE, asked, python=str(self.python), environment=variables)
                if ours["data"] != theirs["data"]:
                    raise child.BenchmarkError("the peer's numpy draws other events from the seed")
                yield {**case, "topic": topic, "ours": ours, "theirs": theirs}

    def table(self, rows: Sequence[Row]) -> Table:
        """CPU seconds and peak memory of both, and their ratios."""
        columns = [
            *("topic", "model", "lengths", "threads", "hstu CPU s", "RecTools CPU s", "ratio"),
            *("hstu MiB", "RecTools MiB", "ratio"),
        ]
        return Table("Beside RecTools", _NOTE, columns, [_cells(row) for row in rows])


def _cells(row: Row) -> list[str]:
    cells = [row["topic"], shape(row["model"], quick=False).name]
    cells += [row["lengths"], str(row["threads"])]
    for figure in ("cpu_s", "peak_mib"):
        ours, theirs = (row[side][figure] for side in ("ours", "theirs"))
        cells += [number(ours), number(theirs), number(theirs / ours)]
    return cells
