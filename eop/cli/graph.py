"""`eop graph`: a protocol as a picture, and a run's progress on it."""

from __future__ import annotations

from pathlib import Path

import click

from eop.cli.common import config_option, open_project, overrides
from eop.cli.completions import runs
from eop.driver.workflow import load_project
from eop.project.config import read_raw
from eop.report import graph_text


@click.command(
    short_help="Draw the protocol of the config, or of a run.",
    epilog="Example: eop graph --run demo-synthetic --format svg > demo.svg",
)
@click.option(
    "--run",
    "run_name",
    shell_complete=runs,
    help="Colour it by how far this run has come.",
)
@config_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["mermaid", "svg"]),
    default="mermaid",
    help="Text for Markdown, or a picture for itself.  [default: mermaid]",
)
@click.pass_obj
def graph(root: Path, run_name: str | None, pairs: tuple[str, ...], form: str) -> None:
    """Draw the protocol of the config, or of a run: phases, gates, fan-outs and the ways back."""
    if run_name is None:
        text = graph_text(load_project(root, read_raw(root, overrides(pairs))).plan, form)
    elif pairs:
        raise click.UsageError("--run and --config do not go together")
    else:
        project = open_project(root, run_name)
        text = graph_text(project.plan, form, project)
    click.echo(text, nl=False)
