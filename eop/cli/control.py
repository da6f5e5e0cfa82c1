"""`eop pause`, `eop resume`, `eop cancel`: stop a run and let it go on, from any shell.

They add an event to the trace and need no lock: they work beside a run, from any host.
"""

from __future__ import annotations

import os
import socket
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from eop.cli.common import open_project, run_option
from eop.cli.output import json_option, print_json
from eop.driver.loop import position_of
from eop.driver.start import require_all_events
from eop.runtime.gates import visible
from eop.runtime.sentinels import user_name
from eop.runtime.trace import Trace

reason_option = click.option("--reason", default="", help="Why; recorded with your name.")


@click.command(epilog="Example: eop pause --reason 'the disk is nearly full'")
@run_option
@reason_option
@json_option
@click.pass_obj
def pause(root: Path, run_name: str | None, reason: str, as_json: bool) -> None:
    """Let nothing new begin. What is at work ends and is kept; gates can be answered."""
    done = _record(root, run_name, "run_paused", reason)
    done.say(f"paused; {done.ending}; to go on: eop resume --run {done.run}", as_json=as_json)


@click.command(
    short_help="Let a paused run go on, with the next `eop run`.", epilog="Example: eop resume"
)
@run_option
@reason_option
@json_option
@click.pass_obj
def resume(root: Path, run_name: str | None, reason: str, as_json: bool) -> None:
    """Let a paused run go on, with the next `eop run` or `snakemake`."""
    done = _record(root, run_name, "run_resumed", reason)
    done.say("resumed; go on with `eop run` or `snakemake`", as_json=as_json)


@click.command(epilog="Example: eop cancel --reason 'the target has a bug'")
@run_option
@reason_option
@json_option
@click.pass_obj
def cancel(root: Path, run_name: str | None, reason: str, as_json: bool) -> None:
    """End a run for good. What is at work ends and is recorded; nothing else begins."""
    done = _record(root, run_name, "run_cancelled", reason)
    done.say(f"cancelled; {done.ending}", as_json=as_json)


def myself() -> str:
    """Who gives this command: login name and host."""
    return f"{user_name(os.getuid())}@{socket.gethostname()}"


@dataclass(frozen=True)
class _Done:
    """An event that was added to a run, and the nodes that are at work all the same."""

    run: str
    event: str
    at_work: tuple[str, ...]

    @property
    def ending(self) -> str:
        """What is still at work, in words."""
        if not self.at_work:
            return "nothing is at work"
        return f"still at work, until they end: {', '.join(self.at_work)}"

    def say(self, words: str, *, as_json: bool) -> None:
        """Print what was done."""
        if as_json:
            print_json({"schema": "run-control/1", **asdict(self)})
        else:
            click.echo(f"{self.run}: {words}")


def _record(root: Path, run_name: str | None, kind: str, reason: str) -> _Done:
    """Add the event, and what follows from it."""
    project = open_project(root, run_name)
    trace = Trace(project.trace_dir, project.plan)
    require_all_events(project, trace.events)
    trace.append(kind, {"by": myself(), "reason": visible(reason).strip()})
    return _Done(project.run, kind, position_of(project).state.active)
