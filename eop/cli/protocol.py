"""`eop check` and `eop compile`."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from eop.cli.common import config_option, overrides
from eop.cli.completions import protocols
from eop.cli.output import json_option, print_json
from eop.core.errors import ExitCode
from eop.driver.workflow import advance_and_compile, load_project, lock_project
from eop.project.config import CONFIG_FILE, read_raw
from eop.project.prices import unpriced
from eop.protocol import compiler
from eop.protocol.coverage import Coverage
from eop.protocol.coverage import coverage as held_markers
from eop.protocol.diagnostics import render
from eop.protocol.formats import DIAGNOSTICS_SCHEMA, as_data, as_github

if TYPE_CHECKING:
    from eop.protocol.diagnostics import Diagnostic
    from eop.protocol.model import Plan


@click.command(
    short_help="Check protocols: all errors at once, each with a hint.",
    epilog="Example: eop check config/protocols/*.eop.md",
)
@click.argument(
    "paths",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    shell_complete=protocols,
)
@click.option("--coverage", is_flag=True, help="List every marker and what holds it.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "github"]),
    default="text",
    help="For people, for programs, or as annotations of GitHub's checks.  [default: text]",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.pass_obj
def check(root: Path, paths: tuple[Path, ...], coverage: bool, form: str, as_json: bool) -> None:
    """Check protocols: all errors at once, each with file, line, column and a hint.

    Exit status 4 when one of them has an error; `eop explain CODE` says more about an error.
    """
    if not (root / "config").is_dir():
        read_raw(root)  # says that this is no project, before all that is missing is listed
    checked = [Checked.of(path, root, coverage=coverage) for path in paths]
    if as_json or form == "json":
        print_json({"schema": DIAGNOSTICS_SCHEMA, "files": [one.data() for one in checked]})
    elif form == "github":
        for one in checked:
            if one.diagnostics:
                click.echo(as_github(one.diagnostics))
    else:
        for one in checked:
            click.echo(one.text(), err=bool(one.diagnostics))
    if any(one.diagnostics for one in checked):
        sys.exit(int(ExitCode.PROTOCOL))


@dataclass(frozen=True)
class Checked:
    """A checked file: its faults, else its plan, and what holds its markers when that was asked."""

    path: Path
    diagnostics: list[Diagnostic]
    plan: Plan | None
    held: list[Coverage] | None

    @classmethod
    def of(cls, path: Path, root: Path, *, coverage: bool) -> Checked:
        """Check the protocol at ``path`` in the project at ``root``."""
        models = unpriced(root, read_raw(root)) if (root / CONFIG_FILE).is_file() else {}
        found = compiler.check(path, root=root, unpriced=models)
        if found:
            return cls(path, found, None, None)
        plan = compiler.load(path, root=root)
        return cls(path, [], plan, held_markers(path, root) if coverage else None)

    def data(self) -> dict[str, Any]:
        """As an item of ``files`` in ``config/schemas/diagnostics.schema.yaml``."""
        held = {} if self.held is None else {"coverage": [asdict(row) for row in self.held]}
        return {
            "path": str(self.path),
            "plan": self.plan.digest if self.plan else None,
            "diagnostics": [as_data(found) for found in self.diagnostics],
            **held,
        }

    def text(self) -> str:
        """For people: the errors, or what holds each marker, or that all is well."""
        if self.plan is None:
            return render(self.diagnostics)
        if self.held is None:
            steps = f"{len(self.plan.phases)} phases, {len(self.plan.gates)} gates"
            return f"{self.path}: ok ({steps}, plan {self.plan.digest[:16]})"
        return "\n".join(
            f"{self.path}:{row.line:<4} {row.name:<32} {row.held:<17} {row.by}" for row in self.held
        )


@click.command(
    "compile",
    short_help="Write the rules that may run now, run nothing.",
    epilog="Example: eop compile --config dataset=ml-100k",
)
@config_option
@json_option
@click.pass_obj
def compile_(root: Path, pairs: tuple[str, ...], as_json: bool) -> None:
    """Compile the protocol: write the rules that may run now, run nothing.

    With --json, print the plan and write nothing.
    """
    project = load_project(root, read_raw(root, overrides(pairs)))
    if as_json:
        print_json(project.plan.to_json())
        return
    with lock_project(root):
        position = advance_and_compile(project)
    for path in sorted(project.rules_dir.glob("*.smk")):
        click.echo(project.relative(path))
    click.echo(f"{len(position.frontier.instances)} nodes; {position.frontier.reason}")
