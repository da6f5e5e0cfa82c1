"""`eop status` and `eop verify`: look; no work is started.

`eop status` takes note of what people have decided meanwhile, as every call does.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from eop.cli.common import json_option, open_project, print_json, run_option
from eop.cli.watch import watch_run
from eop.core.errors import ExitCode
from eop.driver.loop import position_of
from eop.functions.published import published_problems
from eop.report import status_json, status_text
from eop.runtime.trace import Trace
from eop.runtime.verify import verify as verify_run


@click.command(epilog="Example: eop status --json")
@run_option
@json_option
@click.option("--watch", is_flag=True, help="Show it until the run has ended, or Ctrl-C.")
@click.pass_obj
def status(root: Path, run_name: str | None, as_json: bool, watch: bool) -> None:
    """Where a run stands: phases, branches, gates that wait, what is spent.

    --watch shows what is at work, for how long, and its actions so far; without a terminal, it
    prints a line for each thing that happens.
    """
    project = open_project(root, run_name)
    if watch and as_json:
        raise click.UsageError("--watch and --json do not go together")
    if watch:
        watch_run(project)
        return
    position = position_of(project)
    if as_json:
        print_json(status_json(project, position))
    else:
        click.echo(status_text(project, position), nl=False)


@click.command(epilog="Example: eop verify --run hstu-evolve-ml-100k")
@run_option
@json_option
@click.pass_obj
def verify(root: Path, run_name: str | None, as_json: bool) -> None:
    """Derive the run again from its trace and its artifacts, and name all that disagrees.

    When those agree, the published rows are checked too: entries, notes, weights, split, snapshot.
    """
    project = open_project(root, run_name)
    findings = verify_run(root, project.run)
    if not findings:
        state = Trace(project.trace_dir, project.plan).state()
        findings = published_problems(project, state)
    if as_json:
        print_json({"run": project.run, "findings": findings})
    elif findings:
        for finding in findings:
            click.echo(finding, err=True)
    else:
        click.echo(f"{project.run}: the trace, the artifacts, the gates and the rows agree")
    if findings:
        sys.exit(int(ExitCode.STATE))
