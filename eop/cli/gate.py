"""`eop gate`: see what waits for a person, and answer it.

Needs no lock: it works beside a run, from any host that sees the project's folder.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from eop.cli.common import open_project, run_option
from eop.cli.completions import gates
from eop.cli.output import json_option, print_json
from eop.core.errors import EopError, ExitCode, Where
from eop.driver.loop import position_of
from eop.runtime.gates import APPROVED, REJECTED, REQUEST, gate_file, signature_file, visible
from eop.runtime.node import Instance
from eop.runtime.signatures import UnsignedError, pinned, sign, statement

if TYPE_CHECKING:
    from eop.project.project import Project
    from eop.runtime.advance import Position
    from eop.runtime.answers import GateView
    from eop.runtime.state import GateState

_DONE = {APPROVED: "approve", REJECTED: "reject"}
sign_option = click.option(
    "--sign",
    "key",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Sign with this SSH key, where the run takes signed answers only.",
)


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
    gates = [_facts(project, position, key) for key in position.state.gates]
    if as_json:
        print_json({"schema": "gates/1", "run": project.run, "gates": gates})
        return
    click.echo(f"run {project.run}{'' if gates else ': no gate has been reached yet'}")
    for facts in gates:
        reason = f": {facts['reason']}" if facts["reason"] else ""
        by = f" by {facts['by']}{reason}" if facts["by"] else ""
        click.echo(f"{facts['gate']:<32} {facts['status']}{by}")
        if "approve" in facts:
            click.echo(f"  read  {facts['request']}")
        for problem in facts.get("problems", ()):
            click.echo(f"  note  {problem}")


@gate.command(
    short_help="Print the newest request of a gate, and its answer.",
    epilog="Example: eop gate show approve_proposals",
)
@click.argument("name", shell_complete=gates)
@run_option
@json_option
@click.pass_obj
def show(root: Path, name: str, run_name: str | None, as_json: bool) -> None:
    """Print the request of a gate, the newest of this name, and how it was answered."""
    project = open_project(root, run_name)
    position = position_of(project)
    asked = [key for key in position.state.gates if name in (key, Instance.parse(key).step)]
    if not asked:
        raise _not_waiting(project, position, name)
    facts = _facts(project, position, asked[-1])
    if as_json:
        print_json({"schema": "gate/1", "run": project.run, **facts})
        return
    page = project.root / facts["request"]
    click.echo(page.read_text() if page.is_file() else f"{facts['request']} is gone\n", nl=False)
    if facts["by"]:
        click.echo(f"\n{facts['status']} by {facts['by']}: {facts['reason'] or '(no reason)'}")


@gate.command(
    short_help="Approve a gate: asks at the terminal.",
    epilog="Example: eop gate approve approve_proposals",
)
@click.argument("name", shell_complete=gates)
@sign_option
@run_option
@click.pass_obj
def approve(root: Path, name: str, key: Path | None, run_name: str | None) -> None:
    """Approve a gate: asks at the terminal, then makes the sentinel."""
    _answer(root, run_name, name, APPROVED, key)


@gate.command(
    short_help="Reject a gate: asks at the terminal for the reason.",
    epilog="Example: eop gate reject approve_proposals",
)
@click.argument("name", shell_complete=gates)
@sign_option
@run_option
@click.pass_obj
def reject(root: Path, name: str, key: Path | None, run_name: str | None) -> None:
    """Reject a gate: asks at the terminal for the reason, then makes the sentinel."""
    _answer(root, run_name, name, REJECTED, key)


def _facts(project: Project, position: Position, key: str) -> dict[str, Any]:
    """A gate as plain data; a gate that waits also says which files would answer it."""
    known: GateState = position.state.gates[key]
    page = gate_file(
        project.root / "gates", project.run, Instance.parse(key), known.digest, REQUEST
    )
    facts: dict[str, Any] = {
        "gate": key,
        "status": known.status,
        "digest": known.digest,
        "by": known.by,
        "reason": known.reason,
        "request": project.relative(page),
        "shown": [{"name": a.name, "path": a.path, "sha256": a.sha256} for a in known.shown],
    }
    for view in position.waiting:
        if view.instance.key == key:
            paths = {"approve": view.approve, "reject": view.reject}
            facts |= {word: project.relative(path) for word, path in paths.items()}
            facts |= {"signed": view.signed, "problems": list(view.problems)}
    return facts


def _not_waiting(project: Project, position: Position, name: str) -> EopError:
    steps = [one.id for one in project.plan.gates]
    if name in position.state.gates or name in steps:
        names = ", ".join(view.instance.step for view in position.waiting) or "none"
        message = f"gate '{name}' does not wait for an answer (waiting: {names})"
    else:
        message = f"no gate '{name}' in run {project.run} (gates: {', '.join(steps) or 'none'})"
    return EopError(
        "EOP740",
        message,
        hint=f"`eop gate list --run {project.run}` shows the gates that the run has reached",
        exit_code=ExitCode.STATE,
    )


def _waiting(project: Project, name: str) -> GateView:
    position = position_of(project)
    for view in position.waiting:
        if name in (view.instance.key, view.instance.step):
            return view
    raise _not_waiting(project, position, name)


def _answer(root: Path, run_name: str | None, name: str, status: str, key: Path | None) -> None:
    project = open_project(root, run_name)
    view = _waiting(project, name)
    _require_terminal(project, view, status)
    if view.signed != (key is not None):
        raise EopError(
            "EOP747",
            f"the answers of this run are {'signed' if view.signed else 'not signed'}",
            hint="name your key: --sign ~/.ssh/id_ed25519" if view.signed else "leave out --sign",
            exit_code=ExitCode.USAGE,
        )
    click.echo(view.request.read_text())
    for problem in view.problems:
        click.echo(f"note: {problem}")
    asked = f"{_DONE[status]} {view.instance.key} of run {project.run}, digest {view.digest}?"
    click.confirm(asked, abort=True)
    reason = click.prompt("reason (may be empty)", default="", show_default=False)
    reason = visible(reason).strip()
    # Meanwhile others may have answered, or sent the run back.
    if _waiting(project, view.instance.key).digest != view.digest:
        raise _not_waiting(project, position_of(project), view.instance.key)
    _make(project, view, status, reason, key)


def _require_terminal(project: Project, view: GateView, status: str) -> None:
    if sys.stdin.isatty() and sys.stdout.isatty():
        return
    by_hand = f"a person answers with: touch {project.relative(_sentinel(view, status))}"
    raise EopError(
        "EOP741",
        f"`eop gate {_DONE[status]}` asks a person, and there is no terminal here",
        hint=f"{project.relative(view.request)} says how to answer" if view.signed else by_hand,
        exit_code=ExitCode.USAGE,
    )


def _sentinel(view: GateView, status: str) -> Path:
    return view.approve if status == APPROVED else view.reject


def _make(project: Project, view: GateView, status: str, reason: str, key: Path | None) -> None:
    """Make the sentinel; a signature comes first, so that no half of an answer is ever read."""
    path = _sentinel(view, status)
    if key is None:
        _create(project, path, reason)
    else:
        message = statement(project.run, view.instance, view.digest, status, reason)
        beside = signature_file(path)
        _create(project, beside, _signed(project, key, message))
        try:
            _create(project, path, message.decode())
        except EopError:
            beside.unlink()
            raise
    click.echo(f"made {project.relative(path)}; the next `eop run` or `snakemake` goes on from it")


def _signed(project: Project, key: Path, message: bytes) -> str:
    signature = sign(key, message)
    signers = pinned(project.root, position_of(project).state)
    assert signers is not None, "only a run with signers takes signed answers"
    try:
        signers.principal(message, signature)
    except UnsignedError as error:
        raise EopError(
            "EOP748",
            f"this key is not that of an allowed signer of the run: {error}",
            where=Where(str(key)),
            hint="the run goes by the signers that it began with",
            exit_code=ExitCode.USAGE,
        ) from None
    return signature


def _create(project: Project, path: Path, text: str) -> None:
    """A new file: an answer that is already there is never overwritten."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        raise EopError(
            "EOP742",
            "somebody has answered meanwhile, or something else has this name",
            where=Where(project.relative(path)),
            hint=f"`eop gate list --run {project.run}` shows what counts",
            exit_code=ExitCode.STATE,
        ) from None
    with os.fdopen(handle, "w") as stream:
        stream.write(text)
