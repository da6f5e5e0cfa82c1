"""`eop doctor`: whether this machine has what the project needs."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.table import Table
from rich.text import Text

from eop.cli.common import config_option, overrides
from eop.cli.output import json_option, print_json
from eop.core.errors import ExitCode
from eop.driver.doctor import State, checks
from eop.driver.examine import examine
from eop.project.config import require_project
from eop.report import console as make_console

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from eop.driver.doctor import Check

_STYLES = {State.OK: "green", State.NOTE: "yellow", State.MISSING: "red"}


@click.command(
    short_help="Whether this machine has what the project needs.",
    epilog="Example: eop doctor --config protocol=config/protocols/demo.eop.md",
)
@config_option
@json_option
@click.pass_obj
def doctor(root: Path, pairs: tuple[str, ...], as_json: bool) -> None:
    """Whether this machine has what the project needs, and how to mend what it lacks.

    A program is started in the jail as an agent would be, and tries to get out. Of keys only the
    names are shown. Judged is what a run with the same --config would use. Ends with status 9 when
    something needed is missing.
    """
    require_project(root)
    found = checks(examine(root, overrides(pairs)))
    if as_json:
        print_json({"schema": "doctor/1", "checks": [asdict(check) for check in found]})
    else:
        show(found, make_console())
    if any(check.state is State.MISSING for check in found):
        sys.exit(int(ExitCode.ENVIRONMENT))


def show(found: Sequence[Check], console: Console) -> None:
    """Print the checks as a table, and below it what to do."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold", ratio=1)
    group = ""
    for check in found:
        if check.group != group:
            group = check.group
            table.add_row("", Text(group, "bold"), "")
        state = Text(f"{check.state:<7}", _STYLES[check.state])
        detail = Text(check.found)
        if check.mend:
            detail.append(f"\n-> {check.mend}", "dim")
        table.add_row(state, check.name, detail)
    console.print(table)
    missing = sum(check.state is State.MISSING for check in found)
    console.print(f"{missing} missing" if missing else "nothing that is needed is missing")
