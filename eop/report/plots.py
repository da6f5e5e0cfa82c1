"""The charts of the page as Vega-Lite: scores by iteration, training curves, the run in time.

Colours are the page's own variables, so that a chart follows light and dark; legends stand in the
page, where they wrap and are read aloud. Text in a chart is data: Vega runs none of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from statistics import fmean
from typing import TYPE_CHECKING, Any

import altair as alt

from eop.leaderboard.standing import BETTER, PROMOTED, REFERENCE, WITHIN_NOISE, WORSE, standing
from eop.report.curves import read_curve
from eop.report.progress import duration
from eop.report.words import word

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from eop.leaderboard import Entry, Scores
    from eop.report.entry_files import EntryFiles
    from eop.report.timeline import Timeline

Spec = dict[str, Any]
# Names with the colours that they are drawn in: variables of the style sheet.
Legend = tuple[tuple[str, str], ...]

_MOST_CURVES = 50
_POINTS = 60
_STANDING = {
    REFERENCE: "mark-soft",
    PROMOTED: "mark-good",
    BETTER: "mark-calm",
    WITHIN_NOISE: "mark-warn",
    WORSE: "mark-bad",
}
_ENDS = {
    "completed": "mark-good",
    "open": "mark-calm",
    "waited for a person": "mark-warn",
    "failed": "mark-bad",
}
# Both charts in time begin at the same place.
_LEFT = alt.Axis(labelLimit=112, minExtent=116, maxExtent=116, tickCount=4)
# Not by the wheel alone, which scrolls the page.
_ZOOM = "wheel![event.altKey]"
_FONT = "system-ui, -apple-system, Segoe UI, sans-serif"


@dataclass(frozen=True)
class Plot:
    """A chart as Vega-Lite data, and its legend."""

    spec: Spec
    legend: Legend


def scores_plot(entries: Sequence[Entry]) -> Plot | None:
    """Canonical test NDCG@10 of a run's rows by iteration, and how far their seeds lie apart.

    ``None`` when nothing was measured. ``entries`` are of one split.
    """
    points = list(_scores(entries))
    if not points:
        return None
    legend = _legend(_STANDING, (point["standing"] for point in points))
    turns = sorted({point["turn"] for point in points})
    axis = alt.Axis(
        values=_thinned(turns),
        format="d",
        grid=False,
        labelExpr="datum.value == 0 ? 'reference' : datum.label",
    )
    scale = alt.Scale(domain=[turns[0] - 0.6, turns[-1] + 0.6], nice=False, zero=False)
    base = alt.Chart(alt.InlineData(points)).encode(
        x=alt.X("place:Q", title="iteration", axis=axis, scale=scale),
        color=alt.Color("standing:N", scale=_scale(legend), legend=None),
    )
    seeds = base.mark_rule(strokeWidth=2, opacity=0.5).encode(
        y=alt.Y("low:Q", title="NDCG@10, canonical test", scale=alt.Scale(zero=False)),
        y2="high:Q",
    )
    means = base.mark_point(filled=True, size=90, opacity=1, cursor="pointer").encode(
        y="ndcg:Q",
        tooltip=[
            alt.Tooltip("title:N"),
            alt.Tooltip("entry:N"),
            alt.Tooltip("standing:N"),
            alt.Tooltip("ndcg:Q", title="NDCG@10", format=".4f"),
            alt.Tooltip("seeds:Q"),
        ],
    )
    return Plot(_spec(alt.layer(seeds, means), 240), legend)


def curves_plot(entries: Sequence[Entry], files: Mapping[str, EntryFiles]) -> Plot | None:
    """Training loss of the first rows of ``entries``, the mean of their seeds, by standing.

    At most 50 rows; a curve that cannot be read is left out here and named in its row's section.
    """
    points = [point for entry in entries[:_MOST_CURVES] for point in _curve(entry, files)]
    if not points:
        return None
    legend = _legend(_STANDING, (point["standing"] for point in points))
    epochs = sorted({round(point["epoch"]) for point in points})
    ticks = alt.Axis(values=_thinned(epochs), format="d", grid=False)
    near = alt.selection_point(
        name="near", on="pointerover", nearest=True, fields=["entry"], empty=True
    )
    base = alt.Chart(alt.InlineData(points)).encode(
        x=alt.X("epoch:Q", title="epoch", axis=ticks, scale=alt.Scale(nice=False, zero=False)),
        y=alt.Y("loss:Q", title="training loss, mean of seeds", scale=alt.Scale(zero=False)),
        color=alt.Color("standing:N", scale=_scale(legend), legend=None),
        detail="entry:N",
    )
    lines = base.mark_line(strokeWidth=2).encode(
        opacity=alt.condition(near, alt.value(0.95), alt.value(0.2))
    )
    dots = (
        base.mark_point(filled=True, size=60, opacity=0, cursor="pointer")
        .encode(
            tooltip=[
                alt.Tooltip("title:N"),
                alt.Tooltip("entry:N"),
                alt.Tooltip("epoch:Q"),
                alt.Tooltip("loss:Q", format=".4f"),
            ]
        )
        .add_params(near)
    )
    return Plot(_spec(alt.layer(lines, dots), 240), legend)


def time_plot(line: Timeline) -> Plot | None:
    """What was at work when, when gates waited, for each step."""
    if not line.rows:
        return None
    bars = [*_spans(line), *_waits(line)]
    legend = _legend(_ENDS, (bar["end_as"] for bar in bars))
    zoom = alt.selection_interval(name="zoom", bind="scales", encodings=["x"], zoom=_ZOOM)
    work = (
        alt.Chart(alt.InlineData(bars))
        .mark_bar(height=9, cornerRadius=2, strokeWidth=2)
        .encode(
            x=_time("start:T"),
            x2="end:T",
            y=alt.Y("row:N", title=None, sort=list(line.rows), axis=_LEFT),
            color=alt.Color("end_as:N", scale=_scale(legend), legend=None),
            # What takes no time at all is seen all the same.
            stroke=alt.Stroke("end_as:N", scale=_scale(legend), legend=None),
            tooltip=[
                alt.Tooltip("what:N", title="step"),
                alt.Tooltip("status:N"),
                alt.Tooltip("took:N"),
                alt.Tooltip("from:N"),
                alt.Tooltip("why:N", title="why"),
            ],
        )
        .add_params(zoom)
    )
    return Plot(_spec(work, 18 * len(line.rows)), legend)


def spend_plot(line: Timeline) -> Plot | None:
    """Seconds of work and agent actions by the time of day; ``None`` before anything was spent."""
    if len(line.spent) < 2:
        return None
    points = [
        {"time": _ms(point.time), "at": _clock(point.time), "unit": unit, "spent": value}
        for point in line.spent
        for unit, value in (("seconds of work", point.wall_s), ("agent actions", point.actions))
    ]
    legend = (("seconds of work", "s0"), ("agent actions", "s1"))
    chart = (
        alt.Chart(alt.InlineData(points))
        .mark_line(interpolate="step-after", strokeWidth=2)
        .encode(
            x=_time("time:T"),
            y=alt.Y("spent:Q", title=None, axis=_LEFT),
            color=alt.Color("unit:N", scale=_scale(legend), legend=None),
            tooltip=[
                alt.Tooltip("unit:N"),
                alt.Tooltip("spent:Q"),
                alt.Tooltip("at:N"),
            ],
        )
    )
    return Plot(_spec(chart, 130), legend)


def _scores(entries: Sequence[Entry]) -> Iterable[Spec]:
    """A point for each row that was measured, those of an iteration side by side."""
    ordered = sorted(entries, key=lambda one: (one.iteration or 0, one.id))
    for turn, group in groupby(ordered, key=lambda one: one.iteration or 0):
        rows = [_score(entry, entry.test) for entry in group if entry.test]
        for index, row in enumerate(rows):
            yield {"turn": turn, "place": turn + 0.8 * ((index + 0.5) / len(rows) - 0.5), **row}


def _score(entry: Entry, scores: Scores) -> Spec:
    seeds = [metrics["ndcg@10"] for metrics in scores.seeds.values()] or [scores.mean["ndcg@10"]]
    return {
        "entry": entry.id,
        "title": entry.proposal.title,
        "standing": word(standing(entry)),
        "ndcg": scores.mean["ndcg@10"],
        "low": min(seeds),
        "high": max(seeds),
        "seeds": len(scores.seeds),
    }


def _thinned(values: Sequence[int]) -> list[int]:
    """At most about ten of them, the first among them."""
    return list(values[:: max(1, len(values) // 10)])


def _curve(entry: Entry, files: Mapping[str, EntryFiles]) -> Iterable[Spec]:
    text = files[entry.id].curve
    if text is None:
        return
    try:
        series = read_curve(text)
    except ValueError:
        return
    losses: dict[float, list[float]] = {}
    for line in series.values():
        for epoch, loss in line:
            losses.setdefault(epoch, []).append(loss)
    epochs = sorted(losses)
    step = max(1, len(epochs) // _POINTS)
    for epoch in [*epochs[:-1:step], epochs[-1]]:
        yield {
            "entry": entry.id,
            "title": entry.proposal.title,
            "standing": word(standing(entry)),
            "epoch": epoch,
            "loss": round(fmean(losses[epoch]), 5),
        }


def _spans(line: Timeline) -> Iterable[Spec]:
    for span in line.spans:
        end = span.end or line.last
        known = span.outcome if span.outcome in _ENDS else "failed"
        attempt = f", attempt {span.attempt}" if span.attempt > 1 else ""
        yield {
            "what": span.node + attempt,
            "row": span.row,
            "start": _ms(span.start),
            "from": _clock(span.start),
            "end": _ms(end),
            "end_as": known,
            "status": word(span.outcome),
            "took": _took(span.start, end),
            "why": span.reason,
            "leads_to": f"node-{span.node}",
        }


def _waits(line: Timeline) -> Iterable[Spec]:
    for gate in line.gates:
        end = gate.end or line.last
        by = f" by {gate.by}" if gate.by else ""
        yield {
            "what": f"gate {gate.gate}",
            "row": gate.row,
            "start": _ms(gate.start),
            "from": _clock(gate.start),
            "end": _ms(end),
            "end_as": "waited for a person",
            "status": gate.status + by,
            "took": _took(gate.start, end),
            "why": gate.reason,
            "leads_to": f"gate-{gate.gate}",
        }


def _time(field: str) -> alt.X:
    """The axis of both charts in time, in UTC."""
    axis = alt.Axis(labelAngle=0, tickCount=6, labelOverlap=True)
    return alt.X(field, title=None, axis=axis, scale=alt.Scale(type="utc", nice=False))


def _ms(when: str) -> int:
    """Milliseconds since 1970."""
    return round(datetime.fromisoformat(when).timestamp() * 1000)


def _clock(when: str) -> str:
    return f"{when[:10]} {when[11:19]} UTC"


def _took(start: str, end: str) -> str:
    return duration((datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds())


def _legend(colours: Mapping[str, str], seen: Iterable[str]) -> Legend:
    """The names that are seen, those with a colour first; a name without one is a bad end."""
    named = {word(name): colour for name, colour in colours.items()}
    names = set(seen)
    rest = sorted(names - named.keys())
    return tuple((n, named.get(n, "mark-bad")) for n in [*named, *rest] if n in names)


def _scale(legend: Legend) -> alt.Scale:
    return alt.Scale(
        domain=[name for name, _ in legend], range=[f"var(--{colour})" for _, colour in legend]
    )


def _spec(chart: alt.Chart | alt.LayerChart | alt.FacetChart, height: int) -> Spec:
    """The chart as plain data, as wide as its place, in the page's colours."""
    ink = {"labelColor": "var(--soft)", "titleColor": "var(--soft)", "labelFont": _FONT}
    lines = {
        "gridColor": "var(--faint)",
        "domainColor": "var(--faint)",
        "tickColor": "var(--faint)",
    }
    styled = (
        chart.properties(width="container", height=height, background="transparent")
        .configure(font=_FONT)
        .configure_view(stroke=None)
        .configure_axis(**ink, **lines, titleFontWeight="normal")
    )
    spec: Spec = styled.to_dict()
    return spec
