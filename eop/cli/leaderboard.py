"""`eop leaderboard`: every row, the negative ones too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from eop.cli.common import started_runs
from eop.cli.completions import runs
from eop.cli.output import json_option, print_json
from eop.leaderboard import read_entries
from eop.leaderboard.selection import Selection
from eop.leaderboard.standing import STANDINGS
from eop.leaderboard.summary import summaries
from eop.project.config import require_project
from eop.report import leaderboard_csv, leaderboard_json, leaderboard_text, summary_text

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from pathlib import Path

    from eop.leaderboard import Entry


@click.command(
    short_help="All entries, best first, failed and rejected ones too.",
    epilog="Example: eop leaderboard --outcome failed --outcome worse --since 2026-01-31",
)
@click.option("--run", shell_complete=runs, help="Rows of this run only.")
@click.option("--dataset", help="Rows of this data set only.")
@click.option(
    "--outcome",
    "standings",
    multiple=True,
    type=click.Choice(STANDINGS),
    metavar="WORD",
    help=f"Rows that stand there; may be repeated: {', '.join(STANDINGS)}.",
)
@click.option(
    "--since", type=click.DateTime(["%Y-%m-%d"]), help="Rows recorded on this day (UTC) or later."
)
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@click.option(
    "--summary", "summed", is_flag=True, help="What each run came to: base rates, power, q-values."
)
@json_option
@click.pass_obj
def leaderboard(
    root: Path,
    run: str | None,
    dataset: str | None,
    standings: tuple[str, ...],
    since: datetime | None,
    as_csv: bool,
    summed: bool,
    as_json: bool,
) -> None:
    """All entries, best first; failed and rejected ones are rows too."""
    require_project(root)
    if as_csv and (as_json or summed):
        raise click.UsageError("--csv goes neither with --json nor with --summary")
    day = since.date() if since else None
    selection = Selection(run, dataset, frozenset(standings), day)
    entries = read_entries(root)
    require_run(root, run, entries)
    if summed:
        found = summaries(selection.of(entries))
        if as_json:
            runs = [one.to_json() for one in found]
            print_json({"schema": "leaderboard-summary/1", "runs": runs})
        else:
            click.echo(summary_text(found), nl=False)
    elif as_json:
        print_json(leaderboard_json(root, selection))
    elif as_csv:
        click.echo(leaderboard_csv(root, selection), nl=False)
    else:
        click.echo(leaderboard_text(root, selection), nl=False)
    if undated := selection.undated(entries):
        click.echo(f"{undated} row(s) recorded no time and are not among these", err=True)


def require_run(root: Path, run: str | None, entries: Iterable[Entry]) -> None:
    """Raise ``click.UsageError`` for a run without rows that has not even begun."""
    known = sorted({entry.run for entry in entries})
    # A run that has begun may have no row yet.
    if run and run not in [*known, *started_runs(root)]:
        raise click.UsageError(f"no run '{run}' (runs with rows: {', '.join(known) or 'none'})")
