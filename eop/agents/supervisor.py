"""Watch one command to its end and leave no process behind: ``python -I supervisor.py``.

A process of its own, because only it may become the reaper of orphans: whatever the command
starts, in whatever session, stays its descendant and is found. It also dies with its caller: the
pipe on its standard input closes, and it stops everything. Standard library only.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

_SET_CHILD_SUBREAPER = 36
_POLL_S = 0.02
_SWEEP_S = 10.0


def main() -> None:
    """Run the command of the spec and write how it ended to the spec's ``report``.

    The spec is a line of JSON on standard input, for its environment may hold secrets: argv, cwd,
    env, stdin, stdout, stderr, report, wall_s, idle_s, stdout_bytes, grace_s.
    Report: rc (negative for a signal), stop (wall, idle, output, caller or null), survivors
    (processes that outlived the command), wall_s. A command that cannot start: ``error``.
    """
    spec = json.loads(sys.stdin.buffer.readline())
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    started = time.monotonic()
    try:
        child = _start(spec)
    except OSError as error:
        _report(spec, {"error": f"{spec['argv'][0]}: {error.strerror}"})
        return
    stop = _watch(child, spec, started)
    if stop is not None:
        _end(child, spec["grace_s"])
    survivors = _sweep(child)
    wall_s = time.monotonic() - started
    _report(spec, {"rc": child.returncode, "stop": stop, "survivors": survivors, "wall_s": wall_s})


def _start(spec: dict[str, Any]) -> subprocess.Popen[bytes]:
    with (
        Path(spec["stdin"]).open("rb") as source,
        Path(spec["stdout"]).open("ab") as out,
        Path(spec["stderr"]).open("ab") as err,
    ):
        return subprocess.Popen(
            spec["argv"],
            cwd=spec["cwd"],
            env=spec["env"],
            stdin=source,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )


def _watch(child: subprocess.Popen[bytes], spec: dict[str, Any], started: float) -> str | None:
    """Wait for the end; the word for the limit that was reached, ``None`` for an end of its own."""
    size, changed = 0, started
    while child.poll() is None:
        now = time.monotonic()
        grown = sum(Path(spec[name]).stat().st_size for name in ("stdout", "stderr"))
        if grown != size:
            size, changed = grown, now
        if now - started > spec["wall_s"]:
            return "wall"
        if now - changed > spec["idle_s"]:
            return "idle"
        if size > spec["stdout_bytes"]:
            return "output"
        # Readable means a word from the caller, or that the caller is gone.
        if select.select([sys.stdin], [], [], _POLL_S)[0]:
            return "caller"
    return None


def _end(child: subprocess.Popen[bytes], grace_s: float) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(child.pid, number)
        with suppress(subprocess.TimeoutExpired):
            child.wait(grace_s)
            return


def _sweep(child: subprocess.Popen[bytes]) -> int:
    """Kill and reap every descendant; how many there were."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    found: set[int] = set()
    deadline = time.monotonic() + _SWEEP_S
    while (alive := _descendants(os.getpid())) and time.monotonic() < deadline:
        found |= alive
        for pid in alive:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        _reap()
        time.sleep(_POLL_S / 4)
    return len(found)


def _reap() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _descendants(root: int) -> set[int]:
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            # The parent is the second field after the command's name, which may hold anything.
            fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found: set[int] = set()
    pending = [root]
    while pending:
        below = children.get(pending.pop(), [])
        found.update(below)
        pending += below
    return found


def _report(spec: dict[str, Any], report: dict[str, Any]) -> None:
    temporary = Path(spec["report"] + ".tmp")
    temporary.write_text(json.dumps(report))
    temporary.replace(spec["report"])


if __name__ == "__main__":
    main()
