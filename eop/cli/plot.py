"""`eop plot`: figures for papers."""

from __future__ import annotations

from pathlib import Path

import click

from eop.cli.completions import runs
from eop.cli.leaderboard import require_run
from eop.cli.output import json_option, say_files
from eop.leaderboard import read_entries
from eop.leaderboard.selection import Selection
from eop.project.config import require_project
from eop.report import FIGURES, write_figure


@click.command(
    short_help="A figure for a paper: scores, or gains beside the noise.",
    epilog="Example: eop plot noise noise.pdf --run demo-synthetic",
)
@click.argument("figure", type=click.Choice(FIGURES))
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--run", shell_complete=runs, help="Rows of this run only.")
@click.option("--dataset", help="Rows of this data set only.")
@json_option
@click.pass_obj
def plot(
    root: Path, figure: str, file: Path, run: str | None, dataset: str | None, as_json: bool
) -> None:
    """Draw the rows of one split to FILE: .svg, .png or .pdf, one column of a paper wide.

    leaderboard: test scores with their 95 % intervals and seeds, and the references as lines.
    noise: each candidate's gain over its parent beside what null controls and seeds differ by.
    What was not measured is listed in words.
    """
    require_project(root)
    require_run(root, run, read_entries(root))
    write_figure(root, figure, file, Selection(run=run, dataset=dataset))
    say_files([file], as_json=as_json)
