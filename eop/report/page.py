"""The page of a run: one HTML file without script, font, image or style from anywhere else."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from eop.leaderboard.rows import ranked
from eop.report.cards import badge, entry_card, score
from eop.report.charts import common_limit, interval_bar
from eop.report.markup import Markup, el, join
from eop.report.spending import SPENT
from eop.report.view import GateView, NodeView

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from eop.leaderboard import Entry
    from eop.report.cards import EntryFiles
    from eop.report.spending import Spend
    from eop.report.view import IterationView, RunView

_STYLE = Path(__file__).with_name("style.css")
# The browser, too, refuses whatever a hostile title might try to load or run.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page(view: RunView, entries: Sequence[Entry], files: Mapping[str, EntryFiles]) -> str:
    """The whole page. ``entries`` are all of the leaderboard; ``files`` those of this run's own.

    Same input, same text; every word that is not ours is escaped.
    """
    own = [entry for entry in ranked(entries) if entry.id in files]
    head = el(
        "head",
        Markup('<meta charset="utf-8">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        el("title", f"{view.run}: RankEvolve"),
        el("style", Markup(_STYLE.read_text())),
    )
    body = el(
        "body",
        _header(view),
        _tiles(view, own),
        *(_ask(gate) for gate in view.waiting),
        el("h2", "Leaderboard"),
        *_leaderboards(entries, files),
        *(_iteration(iteration) for iteration in view.iterations),
        el("h2", "Entries of this run") if own else None,
        *(entry_card(entry, files[entry.id]) for entry in own),
    )
    return f"<!doctype html>\n{el('html', head, body, lang='en')}\n"


def _header(view: RunView) -> Markup:
    asks = "waits for a person" if view.waiting else "running"
    standing = view.ended or ("paused" if view.halt else asks)
    return el(
        "header",
        el("div", el("h1", view.run, class_="grow"), badge(standing), class_="head"),
        el("p", f"{view.title} · protocol {view.protocol} · {view.events} events", class_="soft"),
        el("p", view.halt) if view.halt else None,
    )


def _tiles(view: RunView, own: Sequence[Entry]) -> Markup:
    measured = [entry for entry in own if entry.test]
    negative = sum(entry.outcome != "completed" for entry in own)
    best = measured[0].test if measured else None
    tiles = [
        (score(best, "ndcg@10"), "best NDCG@10, canonical test"),
        (str(len(own)), f"entries, {negative} without a result"),
        *(_spend_tile(spend) for spend in view.spend),
    ]
    return el(
        "div",
        *(
            el("div", el("b", big), el("span", small, class_="soft small"), class_="tile")
            for big, small in tiles
        ),
        class_="tiles",
    )


def _spend_tile(spend: Spend) -> tuple[str, str]:
    name = SPENT[spend.unit]
    limit = "no limit" if spend.limit is None else f"of {spend.limit:,.10g}"
    unknown = f", {spend.unknown} attempts not metered" if spend.unknown else ""
    least = "\N{GREATER-THAN OR EQUAL TO} " if spend.unknown else ""
    if spend.spent is None:
        return "unknown", f"{name}, {limit}{unknown}"
    spent = f"{spend.spent:,.2f}" if spend.unit == "usd" else f"{spend.spent:,.0f}"
    return f"{least}{spent}", f"{name}, {limit}{unknown}"


def _ask(gate: GateView) -> Markup:
    yes, no = gate.commands
    return el(
        "section",
        el("h3", f"Waiting for you: {gate.step}"),
        el("p", gate.question) if gate.question else None,
        el("p", "Read ", el("code", gate.request), ", then, in the project's folder:"),
        el("pre", f"{yes}     # yes\n{no}     # no"),
        class_="panel ask",
    )


def _leaderboards(entries: Sequence[Entry], files: Mapping[str, EntryFiles]) -> list[Markup]:
    if not entries:
        return [el("p", "No entry yet.", class_="soft")]
    groups = groupby(ranked(entries), key=_split)
    return [_leaderboard(split, list(group), files) for split, group in groups]


def _split(entry: Entry) -> tuple[str, str]:
    split = entry.evidence["split"]
    return (split["dataset"], split["digest"])


def _leaderboard(
    split: tuple[str, str], entries: list[Entry], files: Mapping[str, EntryFiles]
) -> Markup:
    intervals = [e.decision.interval for e in entries if e.decision and e.decision.interval]
    limit = common_limit(intervals)
    heads = (
        "entry",
        "NDCG@10",
        "HR@10",
        "MRR",
        "NDCG@10, validation",
        "against the parent, validation",
        "",
    )
    return el(
        "section",
        el(
            "p",
            f"{split[0]}, split ",
            el("code", split[1][:12]),
            ". Canonical test: all users, full corpus.",
            class_="soft small",
        ),
        el(
            "div",
            el(
                "table",
                el(
                    "thead",
                    el(
                        "tr",
                        *(
                            el("th", head, class_="num" if "@" in head or head == "MRR" else None)
                            for head in heads
                        ),
                    ),
                ),
                el("tbody", *(_row(entry, limit, entry.id in files) for entry in entries)),
            ),
            class_="scroll",
        ),
        class_="panel",
    )


def _row(entry: Entry, limit: float, linked: bool) -> Markup:
    title = entry.proposal.title
    name = el("a", title, href=f"#{entry.id}") if linked else el("span", title)
    return el(
        "tr",
        el("td", name, el("div", entry.id, class_="soft mono")),
        *(
            el("td", score(entry.test, metric), class_="num")
            for metric in ("ndcg@10", "hr@10", "mrr")
        ),
        el("td", score(entry.validation, "ndcg@10"), class_="num"),
        el("td", _against(entry, limit)),
        el(
            "td", badge("promoted" if entry.decision and entry.decision.promoted else entry.outcome)
        ),
    )


def _against(entry: Entry, limit: float) -> Markup | str:
    decision = entry.decision
    if decision is None or decision.delta is None or decision.interval is None:
        return "\N{EN DASH}"
    low, high = decision.interval
    text = f"{decision.delta:+.4f} [{low:+.4f}, {high:+.4f}]"
    return join(
        interval_bar(decision.delta, low, high, limit), el("div", text, class_="small mono")
    )


def _iteration(iteration: IterationView) -> Markup:
    heads = ("step", "branch", "status", "time", "note")
    return el(
        "section",
        el("h2", f"Iteration {iteration.number}"),
        *_branches(iteration.branches),
        el(
            "div",
            el(
                "div",
                el(
                    "table",
                    el("thead", el("tr", *(el("th", head) for head in heads))),
                    el("tbody", *(_step(step) for step in iteration.steps)),
                ),
                class_="scroll",
            ),
            class_="panel",
        ),
    )


def _branches(opened: dict[str, dict[str, str]]) -> list[Markup]:
    """The branches of each fan-out; which item they are of is said where there are several."""
    shown = []
    for item, titles in opened.items():
        if len(opened) > 1:
            shown.append(el("h3", item.replace("_", " ")))
        if titles:
            rows = [join(el("dt", name), el("dd", title)) for name, title in titles.items()]
            shown.append(el("dl", *rows))
    return shown


def _step(step: NodeView | GateView) -> Markup:
    if isinstance(step, GateView):
        who = f"by {step.by}{_at(step.when)}" if step.by else ""
        note = f"{who}: {step.reason}" if step.reason else who
        cells = (f"gate {step.step}", "", badge(step.status), "", note)
    else:
        time = "\N{EN DASH}" if step.wall_s is None else f"{step.wall_s:.1f} s"
        tries = f" (attempt {step.attempt})" if step.attempt > 1 else ""
        cells = (step.step, step.branch or "", badge(step.status), time, step.reason + tries)
    row = "gate" if isinstance(step, GateView) else None
    return el("tr", *(el("td", cell) for cell in cells), class_=row)


def _at(when: str) -> str:
    """An event's time (ISO 8601, UTC) to the minute."""
    return f", {when[:10]} {when[11:16]} UTC" if when else ""
