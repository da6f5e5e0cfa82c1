"""The leaderboard and the status of a run on a terminal; both are made for 80 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from eop.leaderboard.standing import PROMOTED, REFERENCE, WORSE
from eop.report.progress import duration
from eop.report.spending import SPENT
from eop.report.view import OPEN, REQUESTED, WAITING, GateView, NodeView

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from rich.console import Console

    from eop.leaderboard.anchors import Anchor
    from eop.report.spending import Spend
    from eop.report.view import IterationView

MISSING = "\N{EN DASH}"

_STYLES = {
    "completed": "green",
    "approved": "green",
    OPEN: "cyan",
    REQUESTED: "bold yellow",
    WAITING: "dim",
    "skipped": "dim",
    "cut_off": "dim",
}
# Where the word of the trace does not say it to somebody who has not read of the trace.
_SAID = {OPEN: "at work", REQUESTED: "asks you", WAITING: "to come"}

_STANDING = {PROMOTED: "bold green", WORSE: "red"}
_METRICS = {"NDCG@10": "test_ndcg@10", "HR@10": "test_hr@10", "valid.": "validation_ndcg@10"}
_BESIDE_ID = 64  # what all other columns and their padding take
_LEAST_TITLE = 16
_WORD, _WORDS = 9, 12  # an outcome's longest word, and the width that most outcomes take
# Wider than any table: where no terminal sets a width, tables are as wide as their content.
WIDE = 1000


def print_leaderboard(
    console: Console, frame: pd.DataFrame, anchors: Mapping[str, Sequence[Anchor]]
) -> None:
    """Print ``eop.leaderboard.rows``: one table per split, a dash for what was not measured.

    Under a table stand the published ``anchors`` of its data set.
    """
    if frame.empty:
        console.print("No row: the leaderboard is empty, or holds none of these.")
        return
    for (dataset, split), part in frame.groupby(["dataset", "split"], sort=False):
        title = f"{escape(str(dataset))}, split {str(split)[:8]}: canonical test, NDCG@10 first"
        # A terminal wraps what is wider than itself; a crop would lose it.
        console.print(_table(title, part, console), crop=False)
        if published := anchors.get(str(dataset)):
            console.print(Text(_published(published), "dim"))
    console.print(
        f"{MISSING} not measured.  \N{GREEK CAPITAL LETTER DELTA} is NDCG@10 against the parent on "
        "validation. Under a number: its 95 % interval over users and seeds, its seeds, and how "
        "often the test was read.",
        style="dim",
    )
    for name, text in _footnotes(frame):
        console.print(f"{name}: {text}", style="dim", markup=False)


def _published(anchors: Sequence[Anchor]) -> str:
    named = "; ".join(f"{anchor.name} {anchor.ndcg:.4f}" for anchor in anchors)
    return f"Published, single runs of other code on another split: {named}."


def _footnotes(frame: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """What a row needs said beside its numbers."""
    for row in frame.to_dict("records"):
        if row["test_reads"] > 1:
            yield row["entry"], f"its canonical test was read {row['test_reads']} times"
        if len(row["stands_on"]) > 1 and number(row["test_ndcg@10"]) != MISSING:
            yield row["entry"], f"stands on {', then '.join(row['stands_on'])}"


def _table(title: str, part: pd.DataFrame, console: Console) -> Table:
    """The rows of one split. An id must stay in one piece to be copied: columns give way to it.

    Where they cannot, the table is wider than the console.
    """
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    longest = max(map(len, part["entry"]))
    metrics = _METRICS if longest + _BESIDE_ID <= console.width else {"NDCG@10": "test_ndcg@10"}
    table.add_column("entry", ratio=1, overflow="fold", min_width=max(_LEAST_TITLE, longest))
    for name in metrics:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("\N{GREEK CAPITAL LETTER DELTA}", justify="right", no_wrap=True)
    table.add_column("outcome", min_width=_WORD, max_width=_WORDS)
    for row in part.to_dict("records"):
        table.add_row(
            _entry_cell(row["title"], row["entry"]),
            _test_cell(row),
            *(number(row[column]) for column in list(metrics.values())[1:]),
            _delta_cell(row["delta"], row["delta_low"], row["delta_high"]),
            _outcome_cell(row["outcome"], row["standing"]),
        )
    if least_width(table, console) > console.width:
        table.columns[-1].max_width = _WORD
        if (least := least_width(table, console)) > console.width:
            table.width = least
    return table


def least_width(table: Table, console: Console) -> int:
    """Columns that the table takes when its first column is as narrow as it may be."""
    first = table.columns[0]
    first.width = first.min_width
    unbounded = console.options.update(max_width=WIDE)
    least = console.measure(table, options=unbounded).maximum
    first.width = None
    return least


def number(value: object, *, signed: bool = False) -> str:
    """Four decimals, or a dash when the value is missing."""
    if not isinstance(value, int | float) or pd.isna(value):
        return MISSING
    return f"{value:+.4f}" if signed else f"{value:.4f}"


def counted(count: int, noun: str) -> str:
    """So many of something: ``1 seed``, ``2 seeds``; ``entry`` becomes ``entries``."""
    many = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count:,} {noun if count == 1 else many}"


def seeds_and_reads(seeds: int, test_reads: int) -> str:
    """What a number of the canonical test rests on; nothing is said of none."""
    counts = ((seeds, "seed"), (test_reads, "read"))
    return ", ".join(counted(count, noun) for count, noun in counts if count)


def _entry_cell(title: str, entry: str) -> Text:
    return Text.assemble(one_line(title, 60), "\n", (entry, "dim"))


def _test_cell(row: dict[Hashable, Any]) -> Text:
    text = Text(number(row["test_ndcg@10"]))
    if text.plain != MISSING:
        _append_interval(text, row["test_low"], row["test_high"])
        text.append("\n" + seeds_and_reads(row["seeds"], row["test_reads"]), "dim")
    return text


def _delta_cell(delta: object, low: object, high: object) -> Text:
    text = Text(number(delta, signed=True))
    _append_interval(text, low, high, signed=True)
    return text


def _append_interval(text: Text, low: object, high: object, *, signed: bool = False) -> None:
    if number(low) != MISSING:
        text.append(f"\n{number(low, signed=signed)}..{number(high, signed=signed)}", "dim")


def _outcome_cell(outcome: str, standing: str) -> Text:
    text = Text(outcome.replace("_", " "), _style(outcome))
    if standing not in (outcome, REFERENCE):
        text.append(f"\n{standing.replace('_', ' ')}", _STANDING.get(standing, "dim"))
    return text


def steps_table(iteration: IterationView) -> Table:
    """An iteration's phases and gates, one row each, with the newest outcome."""
    table = Table(
        title=f"Iteration {iteration.number}",
        title_justify="left",
        title_style="bold",
        box=None,
        pad_edge=False,
        header_style="dim",
    )
    table.add_column("step", no_wrap=True)
    table.add_column("branch", no_wrap=True)
    table.add_column("status", no_wrap=True)
    table.add_column("time", justify="right", no_wrap=True)
    # The one column that wraps: it alone gives way when the terminal is narrow.
    table.add_column("note", overflow="fold", ratio=1)
    for step in iteration.steps:
        if isinstance(step, GateView):
            note = f"by {step.by}: {step.reason}" if step.reason else (step.by and f"by {step.by}")
            row = (Text(f"gate {step.step}", "bold"), "", step.status, "", note)
        else:
            row = (Text(step.step), step.branch or "", step.status, _time(step), step.reason)
        name, branch, status, time, note = row
        table.add_row(
            name,
            branch,
            Text(_SAID.get(status, status.replace("_", " ")), _style(status)),
            time,
            Text(one_line(note, 200)),
        )
    return table


def _time(node: NodeView) -> str:
    """How long it took; nothing is missing of what has not ended."""
    if node.wall_s is None:
        return "" if node.status in (OPEN, WAITING) else MISSING
    return duration(node.wall_s)


def spend_text(spend: Spend) -> str:
    """A unit of the run's budget in a line."""
    name = "time at work" if spend.unit == "wall_s" else SPENT[spend.unit]
    unmetered = (
        f"; {counted(spend.unknown, 'attempt')} could not be metered" if spend.unknown else ""
    )
    if spend.spent is None:
        return f"{name}: unknown{unmetered}"
    shown = duration if spend.unit == "wall_s" else "{:,.10g}".format
    least = "at least " if spend.unknown else ""
    limit = f" of {shown(spend.limit)}" if spend.limit is not None else ""
    reserved = f", {shown(spend.reserved)} reserved" if spend.reserved else ""
    end = ", no limit" if spend.limit is None else ""
    return f"{name}: {least}{shown(spend.spent)}{limit} spent{reserved}{end}{unmetered}"


def print_gate(console: Console, gate: GateView) -> None:
    """Print what a gate asks and the commands that answer it."""
    console.print(Text.assemble("\nWaiting for you: ", (gate.step, "bold yellow")))
    if gate.question:
        console.print(Text(gate.question))
    # Commands must survive copying: they are never wrapped.
    yes, no = gate.commands
    for label, text in (("read", gate.request), ("yes", yes), ("no", no)):
        console.print(Text(f"  {label:<5}{text}"), soft_wrap=True)
    console.print(Text("  then eop run, or snakemake, goes on from it"))


def _style(status: str) -> str:
    return _STYLES.get(status, "red")


def one_line(text: str, limit: int | None = None) -> str:
    """Text of others on one line of printable characters, at most ``limit`` of them."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    if limit is None or len(line) <= limit:
        return line
    return line[: limit - 1] + "\N{HORIZONTAL ELLIPSIS}"
