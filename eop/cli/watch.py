"""`eop status --watch`: the run as it goes, on a terminal or as lines."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

import click
from rich.live import Live
from rich.text import Text

from eop.driver.loop import position_of
from eop.driver.progress import Observer
from eop.report import Beat, Follower, console, live_text, status_text, working_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from eop.project.project import Project

_EVERY_S = 1.0
_LOOK_S = 5.0


def watch_run(project: Project) -> None:
    """Show the run until it has ended or the person has seen enough (Ctrl-C)."""
    with suppress(KeyboardInterrupt):
        if console().is_terminal:
            _picture(project)
        else:
            _lines(project)


class News:
    """What has happened in a run since the last look, and what is at work: lines of text."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._follower = Follower(project.trace_dir, project.plan)
        self._observer: Observer | None = None
        self._beat, self._looked = Beat(), time.monotonic()

    def lines(self) -> Iterator[str]:
        """The lines that are new; what is at work is looked at every few seconds."""
        yield from self._follower.news()
        if self._follower.at_work and time.monotonic() - self._looked >= _LOOK_S:
            # Made when there is something to look at: before, the run may not have begun.
            self._observer = self._observer or Observer(self._project)
            yield from self._beat.lines(working_nodes(self._project, self._observer.look()))
            self._looked = time.monotonic()


def _picture(project: Project) -> None:
    observer = Observer(project)
    with Live(console=console(), auto_refresh=False, transient=True) as live:
        while not position_of(project).ended:
            text = live_text(project, observer.look())
            live.update(Text.from_ansi(text), refresh=True)
            time.sleep(_EVERY_S)
    click.echo(status_text(project, position_of(project), {}), nl=False)


def _lines(project: Project) -> None:
    news = News(project)
    click.echo(status_text(project, position_of(project), Observer(project).look()), nl=False)
    while not position_of(project).ended:
        time.sleep(_EVERY_S)
        for line in news.lines():
            click.echo(line)
    for line in news.lines():
        click.echo(line)
