"""`eop report`: the page of a run, as a file or as it goes."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eop.cli.common import open_project, run_option
from eop.cli.output import json_option, say_files
from eop.core.errors import EopError, ExitCode
from eop.driver.loop import position_of
from eop.report import page_text, write_report

if TYPE_CHECKING:
    from eop.project.project import Project

_EVERY_S = 1.0


@click.command(
    short_help="Write the page of a run, one HTML file.", epilog="Example: eop report --watch"
)
@run_option
@click.option("--watch", is_flag=True, help="Show it in a browser while the run goes on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="With --watch: the port on this machine.  [default: any that is free]",
)
@json_option
@click.pass_obj
def report(root: Path, run_name: str | None, watch: bool, port: int, as_json: bool) -> None:
    """Write the page of a run: one HTML file that needs nothing else.

    --watch serves it on this machine, always as the run stands, and the open page follows; Ctrl-C
    ends that and writes the file.
    """
    project = open_project(root, run_name)
    if watch and as_json:
        raise click.UsageError("--watch and --json do not go together")
    if watch:
        _watch(project, port)
    say_files([project.relative(write_report(root, project.run))], as_json=as_json)


def _watch(project: Project, port: int) -> None:
    # A web server is loaded for this command alone.
    from eop.report.serve import PageServer

    try:
        server = PageServer(port)
    except OSError as error:
        raise EopError(
            "EOP890",
            f"cannot listen on port {port} of this machine: {error.strerror}",
            hint="leave --port out, or name another",
            exit_code=ExitCode.ENVIRONMENT,
        ) from error
    shown = None
    with server, suppress(KeyboardInterrupt):
        while True:
            now = _version(project)
            if now != shown:
                server.show(now, page_text(project, now))
            if shown is None:
                click.echo(f"{server.address}  (Ctrl-C ends)")
            shown = now
            time.sleep(_EVERY_S)


def _version(project: Project) -> str:
    """What the page is made from: the events of the run, and the rows of the leaderboard."""
    rows = sum(1 for _ in (project.root / "leaderboard").glob("[!.]*/entry.yaml"))
    return f"{position_of(project).state.seq}-{rows}"
