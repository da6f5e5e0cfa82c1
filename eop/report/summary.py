"""What a run came to as a whole, on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from eop.report.terminal import MISSING, least_width, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from eop.leaderboard.summary import Comparison, Summary


def print_summaries(console: Console, summaries: Sequence[Summary]) -> None:
    """Print each run's base rates, what its rule allows, and its comparisons' q-values."""
    if not summaries:
        console.print("No row: the leaderboard is empty, or holds none of these.")
    for summary in summaries:
        _print(console, summary)


def _print(console: Console, summary: Summary) -> None:
    ends = ", ".join(
        f"{count} {name.replace('_', ' ')}" for name, count in summary.standings.items()
    )
    allowed = summary.false_promotions
    facts = {
        "candidates": f"{summary.candidates} in {summary.turns} turn(s): {ends or 'none'}",
        "promoted": f"{summary.promoted}; if nothing ever helped, the rule would promote "
        f"{MISSING if allowed is None else f'{allowed:.2g}'} at most",
        "detectable": f"{number(summary.detectable)} NDCG@10 with a power of 80 % (median)",
        "test reads": str(summary.test_reads),
    }
    console.print(Text(f"{summary.run}, {summary.dataset}", "bold"))
    for name, fact in facts.items():
        console.print(Text(f"  {name:<11}{fact}"), soft_wrap=True)
    if summary.comparisons:
        console.print(_table(summary.comparisons, console), crop=False)


def _table(comparisons: Sequence[Comparison], console: Console) -> Table:
    """Ids stay in one piece; where they cannot, the table is wider than the console."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    longest = max(len(one.entry) for one in comparisons)
    table.add_column("  entry", min_width=longest + 2)
    for name in ("\N{GREEK CAPITAL LETTER DELTA}", "p", "p of turn", "q of run"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("")
    for one in comparisons:
        table.add_row(
            Text(f"  {one.entry}"),
            number(one.delta, signed=True),
            *(f"{value:.3f}" for value in (one.p, one.p_turn, one.q)),
            "promoted" if one.promoted else "",
        )
    if (least := least_width(table, console)) > console.width:
        table.width = least
    return table
