"""`eop run`: call Snakemake until the frontier stands still."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from eop.core.errors import EopError, ExitCode
from eop.driver.start import require_all_events
from eop.driver.workflow import load_project
from eop.project.config import read_raw
from eop.project.project import Project
from eop.runtime.advance import advance
from eop.runtime.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from typing import Any

    from eop.runtime.advance import Position

_TICK_S = 1.0


def run_until_still(
    root: Path,
    overrides: dict[str, Any],
    *,
    cores: int,
    extra: Sequence[str] = (),
    follow: Callable[[Project], Callable[[], None]] | None = None,
) -> Position:
    """Call ``snakemake`` again and again until it moves the run no further.

    ``overrides`` are workflow config values, ``extra`` goes to Snakemake as it is. Raises
    ``EopError`` (EOP820) when a call fails: what it printed is on the terminal above. A call ends
    early, and has not failed, when somebody halts the run meanwhile. What ``follow`` gives for the
    project is called every second while Snakemake works, and once more when it has ended.
    """
    project = load_project(root, read_raw(root, overrides))
    tick = follow(project) if follow else lambda: None
    position = None
    while True:
        before = position.state.seq if position else -1
        status = _call(snakemake_command(overrides, cores=cores, extra=extra), root, tick)
        # Jobs fail in a run that is halted; what our own messages refuse is refused there too.
        if status and (_meaning(status) is not ExitCode.FAILURE or not _halted(project)):
            raise EopError(
                "EOP820",
                how_it_ended(status),
                hint="mend the cause and run the same command again: finished work is kept",
                exit_code=_meaning(status),
            )
        position = position_of(project)
        still = position.state.halt or position.state.seq == before
        if still or position.ended or position.waiting:
            return position


def how_it_ended(status: int) -> str:
    """In words; a status below 0 is the signal that killed Snakemake, which then says nothing."""
    if status < 0:
        return f"snakemake was killed by signal {-status} ({signal.strsignal(-status)})"
    return f"snakemake ended with status {status}; its own message stands above"


def _meaning(status: int) -> ExitCode:
    """What the status of Snakemake says: our own rules and messages end it with ours."""
    known = status in set(ExitCode) - {ExitCode.GATE_CLOSED}
    return ExitCode(status) if known else ExitCode.FAILURE


def _call(command: Sequence[str], root: Path, tick: Callable[[], None]) -> int:
    """Run a command, with ``tick`` called meanwhile, and return its status."""
    with subprocess.Popen(command, cwd=root, env=os.environ) as process:
        while process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_TICK_S)
            tick()
        return process.returncode


def _halted(project: Project) -> bool:
    """Whether somebody has paused or cancelled the run, if it has begun at all."""
    if not Trace(project.trace_dir, project.plan).begun:
        return False
    begun = Project.of_run(project.root, project.run)
    return Trace(begun.trace_dir, begun.plan).state().halt is not None


def snakemake_command(
    overrides: dict[str, Any], *, cores: int, extra: Sequence[str] = ()
) -> list[str]:
    """The command line, as a person would type it."""
    command = [sys.executable, "-m", "snakemake"]
    if overrides:
        # Snakemake has no word for null: an empty value is its None.
        shown = {key: "" if value is None else value for key, value in overrides.items()}
        command += ["--config", *(f"{key}={value}" for key, value in shown.items())]
    # Snakemake goes by its own option, and not by the variable.
    nocolor = ["--nocolor"] if os.environ.get("NO_COLOR") else []
    # --cores ends the pairs: a target at the head of ``extra`` is none of them.
    return [*command, "--cores", str(cores), *nocolor, *extra]


def position_of(project: Project) -> Position:
    """Where the run stands now, after recording what people decided.

    Raises ``EopError`` (EOP714) where the trace is not all that it was: nothing is added to it.
    """
    trace = Trace(project.trace_dir, project.plan)
    require_all_events(project, trace.events)
    return advance(project.root, project.run, project.plan, trace)
