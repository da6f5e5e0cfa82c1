"""`eop pause`, `eop resume`, `eop cancel`: stop a run and let it go on, from any shell.

They add an event to the trace and need no lock: they work beside a run, from any host.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

import click

from eop.cli.common import open_project, run_option
from eop.driver.loop import position_of
from eop.driver.start import require_all_events
from eop.runtime.gates import visible
from eop.runtime.sentinels import user_name
from eop.runtime.trace import Trace

reason_option = click.option("--reason", default="", help="Why; recorded with your name.")


@click.command(epilog="Example: eop pause --reason 'the disk is nearly full'")
@run_option
@reason_option
@click.pass_obj
def pause(root: Path, run_name: str | None, reason: str) -> None:
    """Let nothing new begin. What is at work ends and is kept; gates can be answered."""
    run, at_work = _record(root, run_name, "run_paused", reason)
    click.echo(f"{run}: paused; {_ending(at_work)}; to go on: eop resume --run {run}")


@click.command(
    short_help="Let a paused run go on, with the next `eop run`.", epilog="Example: eop resume"
)
@run_option
@reason_option
@click.pass_obj
def resume(root: Path, run_name: str | None, reason: str) -> None:
    """Let a paused run go on, with the next `eop run` or `snakemake`."""
    run, _ = _record(root, run_name, "run_resumed", reason)
    click.echo(f"{run}: resumed; go on with `eop run` or `snakemake`")


@click.command(epilog="Example: eop cancel --reason 'the target has a bug'")
@run_option
@reason_option
@click.pass_obj
def cancel(root: Path, run_name: str | None, reason: str) -> None:
    """End a run for good. What is at work ends and is recorded; nothing else begins."""
    run, at_work = _record(root, run_name, "run_cancelled", reason)
    click.echo(f"{run}: cancelled; {_ending(at_work)}")


def myself() -> str:
    """Who gives this command: login name and host."""
    return f"{user_name(os.getuid())}@{socket.gethostname()}"


def _record(
    root: Path, run_name: str | None, kind: str, reason: str
) -> tuple[str, tuple[str, ...]]:
    """Add the event, and what follows from it; return the run and the nodes that are at work."""
    project = open_project(root, run_name)
    trace = Trace(project.trace_dir, project.plan)
    require_all_events(project, trace.events)
    trace.append(kind, {"by": myself(), "reason": visible(reason).strip()})
    return project.run, position_of(project).state.active


def _ending(at_work: tuple[str, ...]) -> str:
    if not at_work:
        return "nothing is at work"
    return f"still at work, until they end: {', '.join(at_work)}"
