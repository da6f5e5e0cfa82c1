"""Whether the figures reach what the project asks of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from benchmarks.table import Table, number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.child import Row

_NOTE = "At one thread, with the compiled kernels: the medians of the tables above."
_NAMES = {
    "cpu_s": "CPU s/step",
    "tokens_per_cpu_s": "tokens/CPU s",
    "peak_mib": "peak MiB of training",
    "users_per_cpu_s": "users/CPU s of evaluation",
}


class _Target(NamedTuple):
    topic: str
    model: str
    lengths: str
    figure: str
    bound: str
    limit: float

    def cells(self, measured: Mapping[str, Sequence[Row]]) -> list[str]:
        one = {"kernels": "native", "threads": 1, "quick": False}
        wanted = {"model": self.model, "lengths": self.lengths, **one}
        rows = [row for row in measured.get(self.topic, ()) if wanted.items() <= row.items()]
        named = [self.model.upper(), self.lengths, _NAMES[self.figure]]
        asked = f"{self.bound} {number(self.limit)}"
        if not rows:
            return [*named, asked, "not measured", ""]
        value = rows[0][self.figure]
        holds = value <= self.limit if self.bound == "at most" else value >= self.limit
        return [*named, asked, number(value), "yes" if holds else "no"]


_TARGETS = (
    _Target("steps", "base", "full", "cpu_s", "at most", 0.9),
    _Target("steps", "base", "ml1m", "tokens_per_cpu_s", "at least", 45_000),
    _Target("steps", "large", "full", "cpu_s", "at most", 3.0),
    _Target("steps", "base", "full", "peak_mib", "at most", 1024),
    _Target("evaluation", "base", "full", "users_per_cpu_s", "at least", 500),
    _Target("evaluation", "base", "ml1m", "users_per_cpu_s", "at least", 500),
)


def table(measured: Mapping[str, Sequence[Row]]) -> Table:
    """Each target with what was measured; ``measured`` maps topics to their rows."""
    columns = ["model", "lengths", "figure", "target", "measured", "holds"]
    return Table("Targets", _NOTE, columns, [target.cells(measured) for target in _TARGETS])
