"""`eop gate`: see what waits for a person, and answer it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eop.cli.common import json_option, open_project, print_json, run_option
from eop.core.errors import EopError, ExitCode, Where
from eop.driver.loop import position_of

if TYPE_CHECKING:
    from eop.project.project import Project
    from eop.runtime.advance import GateView


@click.group(epilog="Example: eop gate list")
def gate() -> None:
    """List, read and answer the gates of a run."""


@gate.command("list", epilog="Example: eop gate list --json")
@run_option
@json_option
@click.pass_obj
def list_(root: Path, run_name: str | None, as_json: bool) -> None:
    """Gates that wait for an answer, and those that were answered."""
    project = open_project(root, run_name)
    position = position_of(project)
    waiting = {view.instance.key: view for view in position.waiting}
    if as_json:
        print_json(
            [
                {"gate": key, "status": known.status, "by": known.by, "reason": known.reason}
                | ({"request": project.relative(waiting[key].request)} if key in waiting else {})
                for key, known in position.state.gates.items()
            ]
        )
        return
    if not position.state.gates:
        click.echo("no gate has been reached yet")
    for key, known in position.state.gates.items():
        reason = f": {known.reason}" if known.reason else ""
        by = f" by {known.by}{reason}" if known.by else ""
        click.echo(f"{key:<32} {known.status}{by}")
        if key in waiting:
            click.echo(f"  read  {project.relative(waiting[key].request)}")


@gate.command(epilog="Example: eop gate show approve_proposals")
@click.argument("name")
@run_option
@json_option
@click.pass_obj
def show(root: Path, name: str, run_name: str | None, as_json: bool) -> None:
    """Print the request of a gate that waits."""
    project, view = _waiting(root, run_name, name)
    if as_json:
        paths = {"request": view.request, "approve": view.approve, "reject": view.reject}
        facts = {key: project.relative(path) for key, path in paths.items()}
        print_json({"gate": view.instance.key, "digest": view.digest, **facts})
        return
    click.echo(view.request.read_text(), nl=False)


@gate.command(epilog="Example: eop gate approve approve_proposals")
@click.argument("name")
@run_option
@click.pass_obj
def approve(root: Path, name: str, run_name: str | None) -> None:
    """Approve a gate: asks at the terminal, then makes the sentinel."""
    _answer(root, run_name, name, "approve")


@gate.command(epilog="Example: eop gate reject approve_proposals")
@click.argument("name")
@run_option
@click.pass_obj
def reject(root: Path, name: str, run_name: str | None) -> None:
    """Reject a gate: asks at the terminal for the reason, then makes the sentinel."""
    _answer(root, run_name, name, "reject")


def _waiting(root: Path, run_name: str | None, name: str) -> tuple[Project, GateView]:
    project = open_project(root, run_name)
    views = position_of(project).waiting
    for view in views:
        if name in (view.instance.key, view.instance.step):
            return project, view
    names = ", ".join(view.instance.step for view in views) or "none"
    raise EopError(
        "EOP740",
        f"gate '{name}' does not wait for an answer (waiting: {names})",
        hint="`eop gate list` shows all gates of the run",
        exit_code=ExitCode.STATE,
    )


def _answer(root: Path, run_name: str | None, name: str, answer: str) -> None:
    project, view = _waiting(root, run_name, name)
    sentinel = view.approve if answer == "approve" else view.reject
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise EopError(
            "EOP741",
            f"`eop gate {answer}` asks a person, and there is no terminal here",
            hint=f"a person answers with: touch {project.relative(sentinel)}",
            exit_code=ExitCode.USAGE,
        )
    click.echo(view.request.read_text())
    click.confirm(f"{answer} {view.instance.key}?", abort=True)
    reason = click.prompt("reason (may be empty)", default="", show_default=False)
    # O_EXCL: an answer that is already there is never overwritten.
    try:
        handle = os.open(sentinel, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        raise EopError(
            "EOP742",
            "somebody has answered meanwhile, or something else has this name",
            where=Where(project.relative(sentinel)),
            hint="`eop gate list` shows what counts",
            exit_code=ExitCode.STATE,
        ) from None
    with os.fdopen(handle, "w") as stream:
        stream.write(reason)
    click.echo(f"made {project.relative(sentinel)}")
