"""`eop check` and `eop compile`."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path

import click

from eop.cli.common import config_option, json_option, overrides, print_json
from eop.compile.graph import mermaid
from eop.core.errors import ExitCode
from eop.driver.workflow import advance_and_compile, load_project, lock_project
from eop.project.config import read_raw
from eop.protocol import compiler
from eop.protocol.coverage import coverage as held
from eop.protocol.diagnostics import render


@click.command(epilog="Example: eop check config/protocols/demo.eop.md")
@click.argument("path", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--coverage", is_flag=True, help="List every marker and what holds it.")
@json_option
@click.pass_obj
def check(root: Path, path: Path, coverage: bool, as_json: bool) -> None:
    """Check a protocol: all errors at once, each with file, line, column and a hint."""
    found = compiler.check(path, root=root)
    if as_json:
        print_json([asdict(diagnostic) for diagnostic in found])
    elif found:
        click.echo(render(found), err=True)
    elif coverage:
        for row in held(path, root):
            step = f"{row.step}." if row.step else ""
            click.echo(f"{path}:{row.line:<4} {step + row.marker:<32} {row.held:<17} {row.by}")
    else:
        plan = compiler.load(path, root=root)
        steps = f"{len(plan.phases)} phases, {len(plan.gates)} gates"
        click.echo(f"{path}: ok ({steps}, plan {plan.digest[:16]})")
    if found:
        sys.exit(int(ExitCode.PROTOCOL))


@click.command("compile", epilog="Example: eop compile --graph > protocol.mmd")
@config_option
@click.option("--graph", is_flag=True, help="Print the whole protocol as a Mermaid graph.")
@json_option
@click.pass_obj
def compile_(root: Path, pairs: tuple[str, ...], graph: bool, as_json: bool) -> None:
    """Compile the protocol: write the rules that may run now, run nothing.

    With --json, print the plan; with --graph, its picture. Neither of them writes anything.
    """
    project = load_project(root, read_raw(root, overrides(pairs)))
    if as_json:
        print_json(project.plan.to_json())
        return
    if graph:
        click.echo(mermaid(project.plan), nl=False)
        return
    with lock_project(root):
        position = advance_and_compile(project)
    for path in sorted(project.rules_dir.glob("*.smk")):
        click.echo(project.relative(path))
    click.echo(f"{len(position.frontier.instances)} nodes; {position.frontier.reason}")
