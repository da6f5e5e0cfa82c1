"""`eop status` and `eop verify`: look; no work is started.

`eop status` takes note of what people have decided meanwhile, as every call does.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click

from eop.cli.common import open_project, run_option
from eop.cli.output import json_option, print_json
from eop.cli.watch import watch_run
from eop.core.errors import ExitCode
from eop.driver.loop import position_of
from eop.driver.pinned import changed_pins
from eop.driver.progress import Observer
from eop.functions.published import published_problems
from eop.report import status_json, status_text
from eop.runtime.trace import Trace
from eop.runtime.verify import verify as verify_run


@click.command(
    short_help="Where a run stands, what waits, what is spent.", epilog="Example: eop status --json"
)
@run_option
@json_option
@click.option("--watch", is_flag=True, help="Show it until the run has ended, or Ctrl-C.")
@click.pass_obj
def status(root: Path, run_name: str | None, as_json: bool, watch: bool) -> None:
    """Where a run stands: what is at work, phases, branches, gates that wait, what is spent.

    Of a training it shows seed, epoch, loss and about how long it still takes, of an agent its
    role, what it has spent and what it did last. --watch shows it as it goes; without a terminal,
    it prints a line for each thing that happens.
    """
    project = open_project(root, run_name)
    if watch and as_json:
        raise click.UsageError("--watch and --json do not go together")
    if watch:
        watch_run(project)
        return
    position, seen = position_of(project), Observer(project).look()
    if as_json:
        print_json(status_json(project, position, seen))
    else:
        click.echo(status_text(project, position, seen), nl=False)


def _digits(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    """Enough digits of a digest that no other event has them by chance."""
    if value is not None and not re.fullmatch(r"[0-9a-f]{12,64}", value):
        raise click.BadParameter("12 to 64 hex digits, as `eop verify` prints them")
    return value


@click.command(
    short_help="Derive the run again and name all that disagrees.",
    epilog="Example: eop verify --run hstu-evolve-ml-100k",
)
@run_option
@click.option(
    "--head", metavar="DIGEST", callback=_digits, help="An earlier head that you noted elsewhere."
)
@json_option
@click.pass_obj
def verify(root: Path, run_name: str | None, head: str | None, as_json: bool) -> None:
    """Derive the run again from its trace and its artifacts, and name all that disagrees.

    When those agree, the published rows are checked too: entries, notes, weights, split, snapshot.

    A trace that holds ends with its head, the digest of its last event. Whoever may write to
    the run's folder could cut the trace or write all of it anew, but not so that it holds a head
    which you noted elsewhere: --head asks for that.
    """
    project = open_project(root, run_name)
    findings, last = verify_run(root, project.run, head), None
    # Which rows there are is itself read from the trace and the artifacts.
    readable = not findings
    if readable:
        state = Trace(project.trace_dir, project.plan).state()
        last = {"seq": state.seq, "digest": state.head}
        pins = [project.relative(path) for path in changed_pins(project, state)]
        findings = [f"{path} is not what the run began with, or is missing" for path in pins]
        findings += published_problems(project, state)
    if as_json:
        facts = {"run": project.run, "findings": findings, "head": last}
        print_json({"schema": "verification/1", **facts, "rows_checked": readable})
    elif findings:
        for finding in findings:
            click.echo(finding, err=True)
        if not readable:
            click.echo("rows not checked: mend what is named above, then verify again", err=True)
    else:
        click.echo(f"{project.run}: the trace, the artifacts, the gates and the rows agree")
        click.echo(f"head {last['digest']} (event {last['seq']})" if last else "")
    if findings:
        sys.exit(int(ExitCode.STATE))
