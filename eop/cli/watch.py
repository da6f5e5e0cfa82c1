"""`eop status --watch`: the run as it goes, on a terminal or as lines."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.live import Live
from rich.text import Text

from eop.driver.agent import costs_so_far
from eop.driver.loop import position_of
from eop.report import Follower, live_text, status_text

if TYPE_CHECKING:
    from eop.project.project import Project

_EVERY_S = 1.0


def watch_run(project: Project) -> None:
    """Show the run until it has ended or the person has seen enough (Ctrl-C)."""
    with suppress(KeyboardInterrupt):
        if Console().is_terminal:
            _picture(project)
        else:
            _lines(project)


def _picture(project: Project) -> None:
    with Live(auto_refresh=False, transient=True) as live:
        while not position_of(project).ended:
            text = live_text(project, costs_so_far(project))
            live.update(Text.from_ansi(text), refresh=True)
            time.sleep(_EVERY_S)
    click.echo(status_text(project, position_of(project)), nl=False)


def _lines(project: Project) -> None:
    follower = Follower(project.trace_dir, project.plan)
    click.echo(status_text(project, position_of(project)), nl=False)
    while not position_of(project).ended:
        time.sleep(_EVERY_S)
        for line in follower.news():
            click.echo(line)
    for line in follower.news():
        click.echo(line)
