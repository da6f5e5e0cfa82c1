"""`make bench`: tables on standard output, progress on standard error."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import click

from benchmarks import (
    evaluation,
    growth,
    harness,
    knowledge,
    pages,
    profile,
    scale,
    steps,
    targets,
)
from benchmarks.child import BenchmarkError
from benchmarks.document import Document
from benchmarks.grid import KERNELS, Grid
from benchmarks.machine import machine
from benchmarks.peers.comparison import PYTHON, Comparison
from benchmarks.report import Report
from benchmarks.shapes import MODELS
from benchmarks.synthetic import LENGTHS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.child import Row
    from benchmarks.table import Table

_BY_DEFAULT = ("harness", "steps", "evaluation")
_ON_REQUEST = ("rectools", "scale", "profile", "growth", "knowledge", "page")
_JUDGED = {"steps", "evaluation"}
_LABELS = (
    "topic",
    "proposals",
    "notes",
    "entries",
    "model",
    "lengths",
    "kernels",
    "threads",
    "factor",
)


class Topic(Protocol):
    """Something to measure: a module of this package, or an object like one."""

    def rows(self, grid: Grid) -> Iterator[Row]:
        """Measure, a row at a time."""

    def table(self, rows: Sequence[Row]) -> Table:
        """Show what was measured."""


@click.command(context_settings={"show_default": True})
@click.option(
    *("--only", "topics"),
    multiple=True,
    type=click.Choice([*_BY_DEFAULT, *_ON_REQUEST]),
    default=_BY_DEFAULT,
    help="These topics.",
)
@click.option("--peer", type=click.Choice(["rectools"]), help="This peer, beside ours, as well.")
@click.option(
    "--peer-python",
    default=PYTHON,
    type=click.Path(path_type=Path),
    help="The Python of the peer's environment.",
)
@click.option("--scale", "scaled", is_flag=True, help="Ten times MovieLens-1M as well.")
@click.option("--profile", "profiled", is_flag=True, help="The costliest operations as well.")
@click.option("--growth", "grown", is_flag=True, help="Runs of up to 10,000 proposals as well.")
@click.option("--model", "models", multiple=True, type=click.Choice(MODELS), default=MODELS)
@click.option("--lengths", multiple=True, type=click.Choice(LENGTHS), default=LENGTHS)
@click.option("--kernels", multiple=True, type=click.Choice(KERNELS), default=KERNELS)
@click.option("--threads", multiple=True, type=click.IntRange(min=1), default=(1, 2))
@click.option("--quick", is_flag=True, help="Tiny sizes: shows that all runs, measures nothing.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="All rows go here.")
@click.option(
    *("--write", "document"),
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The tables go to their places in this document.",
)
def main(
    topics: tuple[str, ...],
    peer: str | None,
    peer_python: Path,
    scaled: bool,
    profiled: bool,
    grown: bool,
    json_file: Path | None,
    document: Path | None,
    **grid: object,
) -> None:
    """Measure CPU seconds, tokens and users per CPU second, and peak memory.

    Options that name several values are given several times: --threads 1 --threads 4.
    """
    also = {"rectools": peer is not None, "scale": scaled, "profile": profiled, "growth": grown}
    asked = {*topics, *(name for name, wanted in also.items() if wanted)}
    command = shlex.join(["python", "-m", "benchmarks", *sys.argv[1:]])
    report = Report(command, machine(), Document(document) if document else None)
    try:
        _run(asked, Grid(**grid), Comparison(peer_python), report)  # type: ignore[arg-type]
    except BenchmarkError as error:
        raise click.ClickException(str(error)) from error
    if json_file is not None:
        report.write_json(json_file)


def _run(asked: set[str], grid: Grid, comparison: Comparison, report: Report) -> None:
    """Measure and show topic after topic. What cannot work is refused before the first."""
    judged = bool(asked & _JUDGED)
    if "rectools" in asked:
        comparison.require()
    if report.document is not None:
        report.document.require({*asked, "targets"} if judged else asked)
    click.echo(f"{report.facts}\n")
    topics: list[Topic] = [
        *(harness, steps, evaluation, comparison, scale, profile, growth, knowledge, pages)
    ]
    for name, topic in zip([*_BY_DEFAULT, *_ON_REQUEST], topics, strict=True):
        if name in asked:
            rows = report.measured.setdefault(name, [])
            for row in topic.rows(grid):
                rows.append(row)
                labels = " ".join(str(row[label]) for label in _LABELS if label in row)
                click.echo(f"measured {name} {labels}", err=True)
            report.show(name, topic.table(rows))
    if judged:
        report.show("targets", targets.table(report.measured))


if __name__ == "__main__":
    main()
