"""A run as it stands, and as it is watched: what is at work, what is spent, what waits."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.text import Text

from eop.report.doing import doing_table
from eop.report.terminal import print_gate, spend_text, steps_table
from eop.report.view import MAY_GO_ON

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from eop.report.view import AtWork, RunView

# A node takes three lines or so; the rest of the picture needs about ten, whatever there is.
_LINES, _OTHERS, _FEWEST = 3, 10, 3
_NOBODY = "nothing is at work; where no `eop run` or `snakemake` runs, call one of them"


def print_status(
    console: Console,
    view: RunView,
    working: Sequence[AtWork] = (),
    problems: Sequence[str] = (),
    now: datetime | None = None,
) -> None:
    """Print where a run stands: phases and gates per iteration, budget, and what it waits for.

    ``problems`` are what a person should know of answers: a line each.
    """
    _print_heading(console, view)
    if working:
        console.print(doing_table(working, now or datetime.now(UTC)))
    elif view.standing == MAY_GO_ON:
        console.print(Text(_NOBODY, "dim"), soft_wrap=True)
    for iteration in view.iterations:
        console.print(steps_table(iteration))
    _print_spend(console, view)
    for gate in view.waiting:
        print_gate(console, gate)
    for problem in problems:
        console.print(Text(f"  note {problem}", "yellow"), soft_wrap=True)


def print_live(
    console: Console, view: RunView, working: Sequence[AtWork], now: datetime | None = None
) -> None:
    """Print a run so that what moves stands at the top: a small terminal cuts the rest off."""
    _print_heading(console, view)
    shown = working[: max(_FEWEST, (console.height - _OTHERS) // _LINES)]
    if working:
        console.print(doing_table(shown, now or datetime.now(UTC)))
        if more := len(working) - len(shown):
            console.print(Text(f"and {more} more: eop status lists all", "dim"))
    else:
        console.print(Text("nothing is at work", "dim"))
    _print_spend(console, view)
    for gate in view.waiting:
        print_gate(console, gate)
    console.print(steps_table(view.iterations[-1]))


def _print_heading(console: Console, view: RunView) -> None:
    """Print which run it is, how it stands, and who has halted it."""
    console.print(
        Text.assemble(
            (view.run, "bold"),
            f"  {view.standing}",
            (f"  (protocol {view.protocol}, {view.events} events)", "dim"),
        )
    )
    if view.halt:
        console.print(Text(view.halt, "bold yellow"), soft_wrap=True)


def _print_spend(console: Console, view: RunView) -> None:
    for spend in view.spend:
        console.print(Text(spend_text(spend)))
