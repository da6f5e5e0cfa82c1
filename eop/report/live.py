"""A run as it is watched: what is at work, the budget, what waits for people, the iteration."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import ROUND_CEILING, Decimal
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from eop.report.progress import duration
from eop.report.terminal import print_gate, print_heading, spend_text, steps_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from eop.report.view import AtWork, RunView

_CENT = Decimal("0.01")


def print_live(
    console: Console, view: RunView, working: Sequence[AtWork], now: datetime | None = None
) -> None:
    """Print a run so that what moves stands at the top: a small terminal cuts the rest off."""
    print_heading(console, view)
    if working:
        console.print(_at_work(working, now or datetime.now(UTC)))
    else:
        console.print(Text("nothing is at work", "dim"))
    for spend in view.spend:
        console.print(Text(spend_text(spend)))
    for gate in view.waiting:
        print_gate(console, gate)
    console.print(steps_table(view.iterations[-1]))


def _at_work(working: Sequence[AtWork], now: datetime) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("at work", no_wrap=True)
    table.add_column("attempt", justify="right", no_wrap=True)
    table.add_column("for", justify="right", no_wrap=True)
    table.add_column("agent actions and cost", overflow="fold", ratio=1)
    for node in working:
        # Clocks of hosts differ: a node may seem to have begun in the future.
        elapsed = max(0.0, (now - datetime.fromisoformat(node.since)).total_seconds())
        table.add_row(Text(node.key, "cyan"), str(node.attempt), duration(elapsed), _spent(node))
    return table


def _spent(node: AtWork) -> str:
    if node.reserved is None:
        return ""
    spent = node.spent
    if spent is None or spent.actions is None:
        return f"none seen yet, {node.reserved} reserved"
    parts = [f"{spent.actions} so far, {node.reserved} reserved"]
    if spent.tokens:
        parts.append(f"{spent.tokens:,} tokens")
    if spent.micro_usd:
        # Rounded up: what is spent is never shown as less.
        parts.append(f"{Decimal(spent.micro_usd).scaleb(-6).quantize(_CENT, ROUND_CEILING)} USD")
    return "; ".join(parts)
