"""How the rows of a figure for papers are drawn, as Vega-Lite.

A figure is black on white, as wide as one column (about 85 mm), its letters at least 8 pt; what
tells rows apart is shape as well as colour. The words of a row stand above its interval, so that a
title of any length is read whole. Words of others are data: Vega runs none of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import altair as alt
from rich.cells import cell_len

from eop.leaderboard.standing import (
    BETTER,
    NOT_COMPARED,
    PROMOTED,
    REFERENCE,
    WITHIN_NOISE,
    WORSE,
)
from eop.report.terminal import one_line
from eop.report.words import word

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

Spec = dict[str, Any]

_WIDTH = 310  # px of 1/96 inch
_FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
_LETTER, _LINE, _PLACE = 11, 14, 20  # px: of a letter, of a line of words, of an interval
_APART = 10  # px between words and what stands at their right
# Widths of letters, in parts of the font's size; others are of the usual width.
_EMS = {
    **dict.fromkeys("ijl.,:;'|!", 0.28),
    **dict.fromkeys("ftrI()[]-/ ", 0.34),
    **dict.fromkeys("mMwW@%", 0.95),
}
# Each with its shape, its ink and its filling: colours of Okabe and Ito, told apart in grey too.
_LOOKS = {
    PROMOTED: ("triangle-up", "#0072b2", "#0072b2"),
    BETTER: ("circle", "#0072b2", "#0072b2"),
    WITHIN_NOISE: ("circle", "#404040", "#ffffff"),
    WORSE: ("triangle-down", "#b34700", "#b34700"),
    NOT_COMPARED: ("cross", "#404040", "#ffffff"),
    REFERENCE: ("square", "#000000", "#000000"),
}


@dataclass(frozen=True)
class Row:
    """A row of a figure: its words, what stands at its right, and what is drawn, if measured."""

    words: str
    at_right: str
    standing: str
    value: float | None = None
    interval: tuple[float, float] | None = None
    seeds: tuple[float, ...] = ()
    band: float | None = None

    @property
    def reach(self) -> Iterable[float]:
        """All that the scale must hold."""
        if self.value is not None:
            yield from (self.value, *(self.interval or ()), *self.seeds)
        if self.band is not None:
            yield from (-self.band, self.band)


@dataclass(frozen=True)
class Mark:
    """A line through all rows; ``name`` stands above it."""

    name: str
    at: float
    dash: tuple[int, int] = (1, 0)


@dataclass(frozen=True)
class _Axes:
    """The scales that all layers share: values to the right, px from the top down."""

    title: str
    axis: alt.Axis
    across: alt.Scale
    down: alt.Scale

    def x(self, field: str) -> alt.X:
        return alt.X(f"{field}:Q", title=self.title, axis=self.axis, scale=self.across)

    def y(self, field: str) -> alt.Y:
        return alt.Y(f"{field}:Q", axis=None, scale=self.down)


def figure(
    rows: Sequence[Row], marks: Sequence[Mark], title: str, notes: Sequence[str], *, signed: bool
) -> Spec:
    """Rows from top to bottom: words, what stands at their right, and below them the interval.

    ``title`` names the scale, ``notes`` stand below it; ``signed`` shows the sign of its values.
    """
    points = _placed(rows)
    height = points[-1]["bottom"]
    reach = [value for row in rows for value in row.reach] + [mark.at for mark in marks]
    margin = (max(reach) - min(reach) or abs(reach[0]) or 1.0) * 0.04
    shown = "+.3~f" if signed else ".3~f"
    label = f"datum.value == 0 ? '0' : format(datum.value, '{shown}')"
    axes = _Axes(
        title,
        alt.Axis(tickCount=5, labelFlush=True, labelExpr=label),
        alt.Scale(domain=[min(reach) - margin, max(reach) + margin], nice=False, zero=False),
        alt.Scale(domain=[height, 0], nice=False, zero=False),
    )
    measured = [point for point in points if "value" in point]
    layers = [
        *_behind(axes, measured, marks),
        *_words(axes, points, marks),
        *_intervals(axes, measured),
    ]
    said = alt.TitleParams(
        text=[line for note in notes for line in wrapped(note, _WIDTH)],
        orient="bottom",
        anchor="start",
        frame="group",
        offset=8,
    )
    return _styled(alt.layer(*layers, title=said), height)


def _behind(axes: _Axes, measured: Sequence[Spec], marks: Sequence[Mark]) -> Iterator[alt.Chart]:
    """Bands, and the lines that rows are seen against."""
    banded = [point for point in measured if point["band"] is not None]
    yield (
        alt.Chart(alt.InlineData(banded))
        .mark_rect(color="#d9d9d9")
        .encode(x=axes.x("band_from"), x2="band", y=axes.y("place"), y2="bottom")
    )
    pieces = [_piece(mark, point) for point in measured for mark in marks]
    yield (
        alt.Chart(alt.InlineData(pieces))
        .mark_rule(strokeWidth=1, color="#000000")
        .encode(
            x=axes.x("at"),
            y=axes.y("place"),
            y2="bottom",
            strokeDash=alt.StrokeDash("dash:N", scale=None, legend=None),
        )
    )


def _words(axes: _Axes, points: Sequence[Spec], marks: Sequence[Mark]) -> Iterator[alt.Chart]:
    """What is read: the names of lines, and of each row its words and its number."""
    # Names of lines that lie near each other stand one above the other.
    names = [{"name": m.name, "at": m.at, "top": -_LINE * k} for k, m in enumerate(marks) if m.name]
    yield (
        alt.Chart(alt.InlineData(names))
        .mark_text(baseline="bottom", dy=-3)
        .encode(text="name:N", x=axes.x("at"), y=axes.y("top"))
    )
    base = alt.Chart(alt.InlineData(list(points))).encode(y=axes.y("top"))
    yield base.mark_text(align="left", baseline="top", lineBreak="\n", lineHeight=_LINE).encode(
        text="words:N", x=alt.value(0)
    )
    yield base.mark_text(align="right", baseline="top").encode(
        text="at_right:N", x=alt.value(_WIDTH)
    )


def _intervals(axes: _Axes, measured: Sequence[Spec]) -> Iterator[alt.Chart]:
    """Seeds, intervals and means."""
    seeds = [{"mark": p["mark"], "seed": seed} for p in measured for seed in p["seeds"]]
    yield (
        alt.Chart(alt.InlineData(seeds))
        .mark_tick(orient="vertical", size=11, thickness=1, color="#737373")
        .encode(x=axes.x("seed"), y=axes.y("mark"))
    )
    known = [point for point in measured if point["low"] is not None]
    yield (
        alt.Chart(alt.InlineData(known))
        .mark_rule(strokeWidth=1.6)
        .encode(x=axes.x("low"), x2="high", y=axes.y("mark"), stroke=_look(measured, "stroke"))
    )
    yield (
        alt.Chart(alt.InlineData(list(measured)))
        .mark_point(size=46, strokeWidth=1.4, opacity=1)
        .encode(
            x=axes.x("value"),
            y=axes.y("mark"),
            shape=_look(measured, "shape"),
            stroke=_look(measured, "stroke"),
            fill=_look(measured, "fill"),
        )
    )


def empty_figure(words: str) -> Spec:
    """A figure that says why there is nothing in it."""
    text = alt.Chart(alt.InlineData([{"words": words}])).mark_text(align="left", fontSize=_LETTER)
    return _styled(text.encode(text="words:N", x=alt.value(0)), 30)


def _placed(rows: Sequence[Row]) -> list[Spec]:
    """The rows as data, each with its place in px from the top."""
    lines_of = [wrapped(row.words, _WIDTH - _APART - width_px(row.at_right)) for row in rows]
    heights = [
        len(lines) * _LINE + (_PLACE if row.value is not None else 6)
        for lines, row in zip(lines_of, rows, strict=True)
    ]
    points: list[Spec] = []
    for row, lines, top, height in zip(
        rows, lines_of, accumulate(heights, initial=0), heights, strict=False
    ):
        point = {
            "words": "\n".join(lines),
            "at_right": row.at_right.replace("-", "\N{MINUS SIGN}"),
            "top": top,
        }
        place = top + len(lines) * _LINE
        point |= {"place": place, "mark": place + _PLACE / 2 - 3, "bottom": top + height}
        if row.value is not None:
            low, high = row.interval or (None, None)
            point |= {"value": row.value, "low": low, "high": high, "seeds": list(row.seeds)}
            point |= {"band": row.band, "band_from": None if row.band is None else -row.band}
            point["standing"] = word(row.standing)
        points.append(point)
    return points


def wrapped(words: str, px: float) -> list[str]:
    """Lines that are no wider than so many px; a word that is wider is broken."""
    lines = [""]
    for part in one_line(words).split():
        longer = f"{lines[-1]} {part}".lstrip()
        if width_px(longer) <= px:
            lines[-1] = longer
            continue
        lines += [""] if lines[-1] else []
        for letter in part:
            if lines[-1] and width_px(lines[-1] + letter) > px:
                lines.append("")
            lines[-1] += letter
    return lines


def width_px(text: str) -> float:
    """About how wide a text is: letters of the font fall into few widths."""
    ems = (_EMS.get(c, 0.7 if c.isupper() else 0.56 * cell_len(c)) for c in text)
    return _LETTER * sum(ems)


def _piece(mark: Mark, point: Spec) -> Spec:
    """Of a line, what stands beside the interval of a row: none goes through words."""
    ends = {"place": point["place"], "bottom": point["bottom"]}
    return {"at": mark.at, "dash": list(mark.dash), **ends}


def _look(measured: Sequence[Mapping[str, Any]], channel: str) -> Any:
    """How standings are told apart; all channels together make one legend."""
    seen = {point["standing"] for point in measured}
    looks = {word(name): look for name, look in _LOOKS.items() if word(name) in seen}
    place = ("shape", "stroke", "fill").index(channel)
    scale = alt.Scale(domain=list(looks), range=[look[place] for look in looks.values()])
    legend = alt.Legend(title=None, orient="bottom", columns=3, symbolSize=60)
    kind = {"shape": alt.Shape, "stroke": alt.Stroke, "fill": alt.Fill}[channel]
    return kind("standing:N", scale=scale, legend=legend)


def _styled(chart: alt.Chart | alt.LayerChart | alt.FacetChart, height: float) -> Spec:
    ink = {"labelColor": "#000000", "titleColor": "#000000"}
    sizes = {"labelFontSize": _LETTER, "titleFontSize": _LETTER, "titleFontWeight": "normal"}
    spec: Spec = (
        chart.properties(width=_WIDTH, height=height, background="#ffffff", padding=6)
        .configure(font=_FONT)
        .configure_view(stroke=None)
        .configure_axis(**ink, **sizes, domainColor="#000000", tickColor="#000000", grid=False)
        .configure_legend(labelColor="#000000", labelFontSize=_LETTER, columnPadding=14)
        .configure_text(fontSize=_LETTER, color="#000000")
        .configure_title(fontSize=_LETTER, fontWeight="normal", color="#000000", lineHeight=_LINE)
        .to_dict()
    )
    return spec
