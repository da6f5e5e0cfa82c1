"""One entry's section: what was tried, what came of it, and what it rests on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt
from markupsafe import Markup

from eop.knowledge.pages import note_body
from eop.leaderboard.entry import METRICS
from eop.leaderboard.standing import standing, stands_on
from eop.report.curves import picture, read_curve
from eop.report.patches import read_patch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eop.leaderboard import Entry
    from eop.report.curves import CurvePicture
    from eop.report.entry_files import EntryFiles
    from eop.report.patches import Patch


@dataclass(frozen=True)
class SeedRow:
    """Metrics of one target and seed; the first of a target is the mean of its seeds.

    ``interval`` is that of NDCG@10 over users and seeds, and stands in the first row alone.
    """

    target: str
    seed: str
    values: tuple[float, ...]
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class EntryPage:
    """What the section of an entry shows beside the entry itself."""

    entry: Entry
    files: EntryFiles
    standing: str
    stands_on: tuple[str, ...]
    seeds: tuple[SeedRow, ...]
    curve: CurvePicture | None
    curve_fault: str
    patch: Patch | None
    note: Markup | None


def entry_page(entry: Entry, files: EntryFiles, entries: Mapping[str, Entry]) -> EntryPage:
    """The section of ``entry``; ``entries`` are those that it may stand on, by id."""
    curve, fault = _curve(files.curve)
    return EntryPage(
        entry=entry,
        files=files,
        standing=standing(entry),
        stands_on=tuple(stands_on(entry, entries)),
        seeds=tuple(_seeds(entry)),
        curve=curve,
        curve_fault=fault,
        patch=read_patch(files.patch) if files.patch else None,
        note=_note(files.note) if files.note is not None else None,
    )


def _seeds(entry: Entry) -> list[SeedRow]:
    rows = []
    for target, scores in (("test", entry.test), ("validation", entry.validation)):
        if scores is None:
            continue
        tables = {"mean": scores.mean, **scores.seeds} if len(scores.seeds) > 1 else scores.seeds
        interval = scores.interval
        for seed, metrics in (tables or {"mean": scores.mean}).items():
            name = seed if seed == "mean" else f"seed {seed}"
            values = tuple(metrics[key] for key in METRICS)
            rows.append(SeedRow(target, name, values, interval))
            interval = None
    return rows


def _curve(text: str | None) -> tuple[CurvePicture | None, str]:
    """The picture of a curve, or why there is none."""
    if text is None:
        return None, ""
    try:
        return picture(read_curve(text)), ""
    except ValueError as error:
        return None, str(error)


@lru_cache(maxsize=4096)
def _note(text: str) -> Markup:
    # Raw HTML, images and links in a note are shown as text: the page leads nowhere else.
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.disable(["image", "link", "autolink", "reference"])
    # Its headings stand below those of the page.
    for token in (tokens := parser.parse(note_body(text))):
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + 4)}"
    return Markup(parser.renderer.render(tokens, parser.options, {}))
