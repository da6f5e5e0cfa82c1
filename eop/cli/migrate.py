"""`eop migrate`: let a run go on under a protocol that was changed on the way."""

from __future__ import annotations

from pathlib import Path

import click

from eop.cli.common import config_option, overrides
from eop.cli.control import myself, reason_option
from eop.cli.output import json_option, print_json
from eop.driver.migrate import migrate as bring_under
from eop.driver.workflow import load_project
from eop.project.config import read_raw
from eop.runtime.gates import visible


@click.command(
    short_help="Let a run go on under its changed protocol.",
    epilog="Example: eop migrate --reason 'review got a larger budget'",
)
@config_option
@reason_option
@json_option
@click.pass_obj
def migrate(root: Path, pairs: tuple[str, ...], reason: str, as_json: bool) -> None:
    """Let a run go on under its changed protocol, if all that it has done stays valid.

    Steps that have been at work and gates that were answered must be as they were. Questions that
    wait for an answer are asked again. Recorded with your name; the old plan is kept.
    """
    project = load_project(root, read_raw(root, overrides(pairs)))
    changed = bring_under(project, myself(), visible(reason).strip())
    if as_json:
        print_json({"schema": "migration/1", "run": project.run, "changed": changed})
        return
    if not changed:
        click.echo(f"run '{project.run}' is under this protocol already")
        return
    click.echo(f"run '{project.run}' goes on under the changed protocol:")
    for line in changed:
        click.echo(f"  {line}")
