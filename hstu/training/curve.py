"""``curve.tsv``: what each epoch of a training run came to."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hstu.data.files import write_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class EpochResult(NamedTuple):
    """One row: mean loss of a token, supervised tokens, wall seconds.

    ``watched`` holds further means that the objective reports, each a column of its own.
    """

    epoch: int
    loss: float
    tokens: int
    seconds: float
    watched: dict[str, float]


def write_curve(path: Path, curve: Sequence[EpochResult]) -> None:
    """Write the rows as tab-separated text, atomically; there is at least one."""
    lines = ["\t".join([*EpochResult._fields[:4], *curve[0].watched])]
    for row in curve:
        cells = [str(row.epoch), f"{row.loss:.6f}", str(row.tokens), f"{row.seconds:.3f}"]
        lines.append("\t".join([*cells, *(f"{value:.6f}" for value in row.watched.values())]))
    write_bytes(path, ("\n".join(lines) + "\n").encode())
