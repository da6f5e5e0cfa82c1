"""Child processes with a deadline: own process group, files for streams, nothing left behind."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_GRACE_S = 5.0
_SET_DEATH_SIGNAL = 1


@dataclass(frozen=True)
class Completed:
    """How a child ended. ``rc`` is negative when a signal ended it (as in ``subprocess``)."""

    rc: int
    wall_s: float
    timed_out: bool


def run(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stdout: Path,
    stderr: Path,
    timeout_s: float,
    stdin: Path | None = None,
) -> Completed:
    """Run ``argv`` to its end or to the deadline, then end its whole process group.

    Streams are regular files, never pipes: a slow reader cannot cut them off. Without ``stdin``
    the child reads an empty file. Raises ``FileNotFoundError`` when the program is missing.
    """
    stdout.parent.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    with ExitStack() as stack:
        source = stack.enter_context(stdin.open("rb")) if stdin else subprocess.DEVNULL
        out = stack.enter_context(stdout.open("ab"))
        err = stack.enter_context(stderr.open("ab"))
        child = subprocess.Popen(
            list(argv),
            cwd=cwd,
            env=dict(env),
            stdin=source,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        try:
            child.wait(timeout_s)
            timed_out = False
        except subprocess.TimeoutExpired:
            timed_out = True
        finally:
            _end_group(child)
    return Completed(child.returncode, time.monotonic() - started, timed_out)


def die_with_parent() -> None:
    """From here on this process gets SIGTERM when the one that started it dies (Linux alone)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGTERM, 0, 0, 0)


def _end_group(child: subprocess.Popen[bytes]) -> None:
    """TERM, then KILL, whatever of the child's group still lives."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(child.pid, number)
        except ProcessLookupError:
            break
        try:
            child.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            continue
    child.wait()
