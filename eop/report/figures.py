"""Figures for papers: the scores of rows, and their differences to the parent beside the noise."""

from __future__ import annotations

from statistics import stdev
from typing import TYPE_CHECKING

from eop.leaderboard.standing import standing
from eop.report.figure_drawing import Mark, Row, figure
from eop.report.terminal import number, one_line
from eop.report.words import word

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eop.leaderboard import Entry
    from eop.report.figure_drawing import Spec

MOST_ROWS = 40


def leaderboard_figure(entries: Sequence[Entry]) -> Spec | None:
    """Canonical test NDCG@10 of rows of one split, in their order, with 95 % intervals and seeds.

    ``None`` when none was measured. A row without a score says how it ended instead. Of more than
    40 rows the first are drawn, and the references; a note says what is left out.
    """
    if not any(entry.test for entry in entries):
        return None
    drawn = _first(entries)
    names = _names(entries)
    rows = [_score(entry, names[entry.id]) for entry in drawn]
    far = _far_below(entries)
    marks = [
        Mark(entry.kind, entry.test.mean["ndcg@10"], (4, 3) if entry.kind == "base" else (1, 3))
        for entry in _only_of_their_kind(drawn)
        if entry.test and entry.id not in far
    ]
    bars = "Bars: 95 % intervals over users and seeds. "
    notes = [f"{bars if any(row.interval for row in rows) else ''}Ticks: single seeds."]
    if any(row.value is not None and row.interval is None for row in rows):
        notes.append("Where there is no bar, no interval was recorded.")
    for entry in drawn:
        if entry.id in far:
            notes.append(f"Far to the left of the scale: {one_line(names[entry.id])}.")
    rows = [_off_the_scale(row) if e.id in far else row for e, row in zip(drawn, rows, strict=True)]
    return figure(
        rows, marks, "NDCG@10, canonical test", [*notes, *_left_out(entries, drawn)], signed=False
    )


def noise_figure(entries: Sequence[Entry]) -> Spec | None:
    """Each candidate's difference to its parent on validation, beside what noise comes to.

    ``None`` when nothing was compared. The band of a row is what null controls differ by, the
    dotted lines one standard deviation of the base's seeds. Not more than 40 rows, as above.
    """
    candidates = [entry for entry in entries if entry.kind == "candidate"]
    if all(_delta(entry) is None for entry in candidates):
        return None
    drawn = sorted(candidates, key=_by_delta)[:MOST_ROWS]
    names = _names(entries)
    rows = [_difference(entry, names[entry.id]) for entry in drawn]
    marks = [Mark("", 0.0)]
    notes = ["Bars: 95 % intervals of the paired difference."]
    if any(row.band is not None for row in rows):
        notes.append("Grey: the noise band, what null controls differ by.")
    if any(row.value is not None and row.band is None for row in rows):
        notes.append("Where there is no grey, no band was recorded.")
    spread = _seed_deviation(entries)
    if spread is not None:
        marks += [Mark("", -spread, (1, 3)), Mark("", spread, (1, 3))]
        notes.append(f"Dotted: one standard deviation of the base's seeds, {spread:.4f}.")
    title = "difference of NDCG@10 to the parent, validation"
    return figure(rows, marks, title, [*notes, *_left_out(candidates, drawn)], signed=True)


def _first(entries: Sequence[Entry]) -> list[Entry]:
    """So many as can be read, the references among them wherever they stand."""
    references = [entry for entry in entries if entry.kind != "candidate"][:MOST_ROWS]
    others = [entry for entry in entries if entry.kind == "candidate"]
    kept = {entry.id for entry in (*references, *others[: MOST_ROWS - len(references)])}
    return [entry for entry in entries if entry.id in kept]


def _left_out(entries: Sequence[Entry], drawn: Sequence[Entry]) -> list[str]:
    kept = {entry.id for entry in drawn}
    others = [entry for entry in entries if entry.id not in kept]
    if not others:
        return []
    unmeasured = sum(entry.test is None for entry in others)
    return [f"Not drawn: {len(others)} rows more, {unmeasured} of them not measured."]


def _names(entries: Sequence[Entry]) -> dict[str, str]:
    """The words of each row: its title, and its id as far as it tells rows apart."""
    one_run = len({entry.run for entry in entries}) == 1
    found = {}
    for entry in entries:
        short = entry.id.removeprefix(f"{entry.run}-") if one_run else entry.id
        named = not one_run or entry.kind == "candidate"
        found[entry.id] = f"{short}: {entry.proposal.title}" if named else entry.proposal.title
    return found


def _only_of_their_kind(entries: Sequence[Entry]) -> list[Entry]:
    """The base and the popularity that all rows are seen against; those of several runs are not."""
    by_kind = {kind: [e for e in entries if e.kind == kind] for kind in ("base", "popularity")}
    return [found[0] for found in by_kind.values() if len(found) == 1]


def _far_below(entries: Sequence[Entry]) -> set[str]:
    """Popularity, where a scale that reached it would press all others together."""
    models = [reach for e in entries if e.kind != "popularity" for reach in _score(e, "").reach]
    if not models:
        return set()
    bound = min(models) - (max(models) - min(models))
    return {
        entry.id
        for entry in entries
        if entry.kind == "popularity" and entry.test and entry.test.mean["ndcg@10"] < bound
    }


def _score(entry: Entry, words: str) -> Row:
    scores, stands = entry.test, standing(entry)
    if scores is None:
        return Row(words, word(stands), stands)
    mean = scores.mean["ndcg@10"]
    seeds = tuple(metrics["ndcg@10"] for metrics in scores.seeds.values())
    return Row(words, number(mean), stands, mean, scores.interval, seeds)


def _off_the_scale(row: Row) -> Row:
    return Row(row.words, f"\N{LEFTWARDS ARROW} {row.at_right}", row.standing)


def _delta(entry: Entry) -> float | None:
    return entry.decision.delta if entry.decision else None


def _by_delta(entry: Entry) -> tuple[bool, float, str]:
    delta = _delta(entry)
    return (delta is None, -(delta or 0.0), entry.id)


def _difference(entry: Entry, words: str) -> Row:
    made, stands = entry.decision, standing(entry)
    if made is None or made.delta is None:
        return Row(words, word(stands), stands)
    return Row(
        words, number(made.delta, signed=True), stands, made.delta, made.interval, (), made.band
    )


def _seed_deviation(entries: Sequence[Entry]) -> float | None:
    """How far the seeds of the one base lie apart on validation; ``None`` with fewer than two."""
    bases = [entry for entry in entries if entry.kind == "base"]
    scores = bases[0].validation if len(bases) == 1 else None
    seeds = [metrics["ndcg@10"] for metrics in scores.seeds.values()] if scores else []
    return stdev(seeds) if len(seeds) > 1 else None
