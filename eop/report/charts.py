"""Two small charts as inline SVG: a loss curve, and an interval on a common scale."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from eop.report.markup import Markup, el

if TYPE_CHECKING:
    from collections.abc import Sequence

_WIDTH, _HEIGHT = 520, 170
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 56, 14, 26
_BAR_WIDTH, _BAR_HEIGHT = 150, 22

Series = dict[str, list[tuple[float, float]]]
_Scale = Callable[[float], float]


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


def loss_curve(series: Series) -> Markup:
    """Training loss by epoch, one line a seed, labelled at its end."""
    points = [point for line in series.values() for point in line]
    epochs, losses = [p[0] for p in points], [p[1] for p in points]
    x_low, x_high = min(epochs), max(epochs)
    y_low, y_high = min(losses), max(losses)

    def x(epoch: float) -> float:
        return _scaled(epoch, x_low, x_high, _LEFT, _WIDTH - _RIGHT)

    def y(loss: float) -> float:
        return _scaled(loss, y_low, y_high, _HEIGHT - _BOTTOM, _TOP)

    parts = [_rule(y(value), f"{value:.3g}") for value in dict.fromkeys((y_low, y_high))]
    for value in dict.fromkeys((x_low, x_high)):
        parts.append(
            el("text", f"epoch {value:g}", x=_px(x(value)), y=_HEIGHT - 6, class_="tick middle")
        )
    for index, line in enumerate(series.values()):
        path = " ".join(f"{_px(x(epoch))},{_px(y(loss))}" for epoch, loss in line)
        parts.append(el("polyline", points=path, class_=f"line s{index % 4}"))
        end_x, end_y = x(line[-1][0]), y(line[-1][1])
        parts.append(el("circle", cx=_px(end_x), cy=_px(end_y), r=3, class_=f"dot s{index % 4}"))
    parts += _end_labels(series, x, y)
    size = f"0 0 {_WIDTH} {_HEIGHT}"
    return el("svg", *parts, viewBox=size, class_="curve", role="img", aria_label="Training loss")


def interval_bar(delta: float, low: float, high: float, limit: float) -> Markup:
    """An interval with its mean on a scale from -``limit`` to +``limit``, and the zero line."""

    def x(value: float) -> str:
        return _px(_scaled(max(-limit, min(limit, value)), -limit, limit, 4, _BAR_WIDTH - 4))

    kind = "up" if low > 0 else "down" if high < 0 else "even"
    middle = _BAR_HEIGHT / 2
    return el(
        "svg",
        el("line", x1=x(0), x2=x(0), y1=2, y2=_BAR_HEIGHT - 2, class_="zero"),
        el("line", x1=x(low), x2=x(high), y1=middle, y2=middle, class_=f"whisker {kind}"),
        el("circle", cx=x(delta), cy=middle, r=4, class_=f"mean {kind}"),
        viewBox=f"0 0 {_BAR_WIDTH} {_BAR_HEIGHT}",
        class_="interval",
        role="img",
        aria_label=f"{delta:+.4f}, from {low:+.4f} to {high:+.4f}",
    )


def common_limit(intervals: Sequence[tuple[float, float]]) -> float:
    """The half width of a scale on which all ``intervals`` and zero fit; never 0."""
    return max((abs(end) for interval in intervals for end in interval), default=0.0) * 1.05 or 1.0


def _end_labels(series: Series, x: _Scale, y: _Scale) -> list[Markup]:
    """The seed's name beside the end of its line, pushed down where two would overlap."""
    labels: list[Markup] = []
    lowest = -math.inf
    ends = sorted((y(line[-1][1]), x(line[-1][0]), seed) for seed, line in series.items() if seed)
    for end_y, end_x, seed in ends:
        lowest = max(end_y + 4, lowest + 13)
        labels.append(el("text", f"seed {seed}", x=_px(end_x + 8), y=_px(lowest), class_="tick"))
    return labels


def _rule(y: float, label: str) -> Markup:
    line = el("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=_px(y), y2=_px(y), class_="grid")
    text = el("text", label, x=_LEFT - 8, y=_px(y + 4), class_="tick end")
    return Markup(line + text)


def _scaled(value: float, low: float, high: float, start: float, end: float) -> float:
    share = 0.5 if high == low else (value - low) / (high - low)
    return start + share * (end - start)


def _px(value: float) -> str:
    return f"{value:.1f}"
