"""Training curves, and the geometry of two small pictures that need no script."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eop.leaderboard import Decision

_WIDTH, _HEIGHT = 520, 170
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 56, 14, 26
_BAR_WIDTH = 150

Series = dict[str, list[tuple[float, float]]]


def read_curve(text: str) -> Series:
    """Points (epoch, loss) per seed from ``curve.tsv``; one unnamed series without a seed column.

    Raises ``ValueError`` for a file without the columns or with anything but finite numbers.
    """
    series: Series = {}
    for row in csv.DictReader(io.StringIO(text), delimiter="\t"):
        try:
            point = (float(row["epoch"]), float(row["loss"]))
        except (KeyError, TypeError) as error:
            raise ValueError("a curve has the columns epoch and loss") from error
        if not all(map(math.isfinite, point)):
            raise ValueError(f"epoch {row['epoch']} has the loss {row['loss']}")
        series.setdefault(row.get("seed") or "", []).append(point)
    if not series:
        raise ValueError("a curve has at least one epoch")
    return series


@dataclass(frozen=True)
class CurveLine:
    """One seed's line in pixels: its points as SVG has them, its end, and where its name stands."""

    seed: str
    points: str
    end: tuple[float, float]
    label_y: float


@dataclass(frozen=True)
class CurvePicture:
    """A loss curve in pixels: lines, and ticks as (pixel, label)."""

    width: int
    height: int
    left: int
    right: int
    lines: tuple[CurveLine, ...]
    losses: tuple[tuple[float, str], ...]
    epochs: tuple[tuple[float, str], ...]


def picture(series: Series) -> CurvePicture:
    """Training loss by epoch, one line a seed, named at its end."""
    points = [point for line in series.values() for point in line]
    epochs, losses = [p[0] for p in points], [p[1] for p in points]

    def x(epoch: float) -> float:
        return _scaled(epoch, min(epochs), max(epochs), _LEFT, _WIDTH - _RIGHT)

    def y(loss: float) -> float:
        return _scaled(loss, min(losses), max(losses), _HEIGHT - _BOTTOM, _TOP)

    pixels = {seed: [(x(epoch), y(loss)) for epoch, loss in line] for seed, line in series.items()}
    labels = _label_heights({seed: line[-1][1] for seed, line in pixels.items()})
    return CurvePicture(
        width=_WIDTH,
        height=_HEIGHT,
        left=_LEFT,
        right=_WIDTH - _RIGHT,
        lines=tuple(
            CurveLine(seed, " ".join(f"{a:.1f},{b:.1f}" for a, b in line), line[-1], labels[seed])
            for seed, line in pixels.items()
        ),
        losses=tuple((y(v), f"{v:.3g}") for v in dict.fromkeys((min(losses), max(losses)))),
        epochs=tuple((x(v), f"epoch {v:g}") for v in dict.fromkeys((min(epochs), max(epochs)))),
    )


@dataclass(frozen=True)
class IntervalBar:
    """An interval with its mean, in pixels of a bar whose middle is 0."""

    width: int
    zero: float
    low: float
    high: float
    mean: float
    kind: str
    label: str


def interval_bar(decision: Decision | None, limit: float) -> IntervalBar | None:
    """The bar of a comparison on a scale from -``limit`` to +``limit``; ``None`` without one."""
    if decision is None or decision.delta is None or decision.interval is None:
        return None
    low, high = decision.interval

    def x(value: float) -> float:
        return _scaled(max(-limit, min(limit, value)), -limit, limit, 4, _BAR_WIDTH - 4)

    return IntervalBar(
        width=_BAR_WIDTH,
        zero=x(0),
        low=x(low),
        high=x(high),
        mean=x(decision.delta),
        kind="up" if low > 0 else "down" if high < 0 else "even",
        label=f"{decision.delta:+.4f} [{low:+.4f}, {high:+.4f}]",
    )


def common_limit(decisions: Sequence[Decision | None]) -> float:
    """The half width of a scale on which all intervals and zero fit; never 0."""
    ends = (abs(end) for one in decisions if one and one.interval for end in one.interval)
    return max(ends, default=0.0) * 1.05 or 1.0


def _label_heights(ends: dict[str, float]) -> dict[str, float]:
    """Where each seed's name stands beside the end of its line, pushed down where two overlap."""
    found: dict[str, float] = {}
    lowest = -math.inf
    for end, seed in sorted((end, seed) for seed, end in ends.items()):
        lowest = max(end + 4, lowest + 13)
        found[seed] = lowest
    return found


def _scaled(value: float, low: float, high: float, start: float, end: float) -> float:
    share = 0.5 if high == low else (value - low) / (high - low)
    return start + share * (end - start)
