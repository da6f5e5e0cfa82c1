"""The page of a run: one HTML file without script, font, image or style from anywhere else."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from eop.compile.layout import layout
from eop.leaderboard.ranking import leader, metric, ranked, split_of
from eop.leaderboard.standing import standing
from eop.leaderboard.summary import summaries
from eop.report.curves import common_limit, interval_bar
from eop.report.entry_page import entry_page
from eop.report.lineage import open_branches, tree
from eop.report.plots import curves_plot, scores_plot, spend_plot, time_plot
from eop.report.protocol_graph import step_marks
from eop.report.scripts import ASSETS, data_block, own_script
from eop.report.templating import environment

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from eop.leaderboard import Entry
    from eop.leaderboard.anchors import Anchor
    from eop.protocol.model import Plan
    from eop.report.claims import ShownClaim
    from eop.report.curves import IntervalBar
    from eop.report.entry_files import EntryFiles
    from eop.report.knowledge_map import KnowledgeMap
    from eop.report.plots import Plot
    from eop.report.scripts import Script
    from eop.report.timeline import Timeline
    from eop.report.view import RunView

# The browser, too, refuses whatever a hostile title might try to load or run: these two scripts
# run and no other, nothing is fetched, and no form leads anywhere.
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src {scripts}; connect-src {connect}; "
    "base-uri 'none'; form-action 'none'"
)
_NOWHERE = "'none'"


@dataclass(frozen=True)
class Material:
    """All that a page is made of.

    ``entries`` are all of the leaderboard; ``files`` are those of the run's own, by their ids;
    ``anchors`` the published numbers, by data set.
    """

    plan: Plan
    view: RunView
    entries: Sequence[Entry]
    files: Mapping[str, EntryFiles]
    timeline: Timeline
    map: KnowledgeMap | None
    claims: Sequence[ShownClaim]
    anchors: Mapping[str, Sequence[Anchor]]
    chart_script: Script


@dataclass(frozen=True)
class Row:
    """A row of the leaderboard: ``own`` says whether this page has a section on it."""

    entry: Entry
    standing: str
    own: bool
    bar: IntervalBar | None


@dataclass(frozen=True)
class Board:
    """The rows of one split, ranked; numbers of others that they are seen beside."""

    dataset: str
    split: str
    rows: tuple[Row, ...]
    anchors: Sequence[Anchor]


def page(material: Material, version: str | None = None) -> str:
    """The whole page. Same input, same text; every word that is not ours is escaped.

    With a ``version``, the page asks its server now and then whether there is a newer one, and is
    loaded anew then.
    """
    view, entries, files = material.view, material.entries, material.files
    own = [entry for entry in ranked(entries) if entry.id in files]
    by_id = {entry.id: entry for entry in entries}
    script = own_script()
    plots = _plots(material, own)
    sources = f"{script.source} {material.chart_script.source}"
    policy = _POLICY.format(scripts=sources, connect="'self'" if version else _NOWHERE)
    return (
        environment()
        .get_template("page.html")
        .render(
            view=view,
            version=version,
            policy=policy,
            style=style(),
            script=script.text,
            chart_script=material.chart_script.text,
            plots=data_block({name: plot.spec for name, plot in plots.items()}),
            legends={name: plot.legend for name, plot in plots.items()},
            boards=list(boards(material.entries, files.keys(), material.anchors)),
            filtered=True,
            summaries=summaries(own),
            led=_led(own),
            negative=sum(entry.outcome != "completed" for entry in own),
            standings=Counter(standing(entry) for entry in own),
            iterations=sorted({entry.iteration for entry in own if entry.iteration}),
            layout=layout(material.plan),
            marks=step_marks(view),
            tree=tree(own),
            on_their_way=open_branches(view, own),
            gates=view.gates,
            map=material.map,
            claims=material.claims,
            pages=[entry_page(entry, files[entry.id], by_id) for entry in own],
            own=frozenset(files),
            standing=standing,
        )
    )


def _plots(material: Material, own: list[Entry]) -> dict[str, Plot]:
    """The charts that there is something to draw for, by the id of their place."""
    split = split_of(own[0]) if own else None
    drawn = {
        "scores": scores_plot([entry for entry in own if split_of(entry) == split]),
        "curves": curves_plot(own, material.files),
        "work": time_plot(material.timeline),
        "spend": spend_plot(material.timeline),
    }
    return {name: plot for name, plot in drawn.items() if plot}


def style() -> str:
    """The style sheet of every page."""
    names = ("colours.css", "style.css", "protocol.css")
    return "".join((ASSETS / name).read_text() for name in names)


def _led(own: list[Entry]) -> float | None:
    """The test score of who leads; the highest one may be no more than the luckiest."""
    first = leader(entry for entry in own if split_of(entry) == split_of(own[0]))
    return metric(first.test, "ndcg@10") if first else None


def boards(
    entries: Sequence[Entry], own: Collection[str], anchors: Mapping[str, Sequence[Anchor]]
) -> Iterator[Board]:
    """The leaderboard of each split on which the page has rows of its ``own``, by their ids."""
    mine = {split_of(entry) for entry in entries if entry.id in own}
    for (dataset, split), group in groupby(ranked(entries), key=split_of):
        if (dataset, split) in mine:
            found = list(group)
            limit = common_limit([entry.decision for entry in found])
            rows = tuple(
                Row(entry, standing(entry), entry.id in own, interval_bar(entry.decision, limit))
                for entry in found
            )
            yield Board(dataset, split, rows, anchors.get(dataset, ()))
