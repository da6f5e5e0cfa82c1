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
# How often what is used is looked at, and the most of the time that looking at files may take.
_LOOK_S = 1.0
_LOOK_SHARE = 0.1
_PAGE = os.sysconf("SC_PAGE_SIZE")
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
_DEAD = frozenset("ZXx")
# In a time of grace these would take more yet.
_AT_ONCE = frozenset({"memory", "processes", "disk"})


def main() -> None:
    """Run the command of the spec and write how it ended to the spec's ``report``.

    The spec is a line of JSON on standard input, for its environment may hold secrets: argv, cwd,
    env, layers (processes between the first that is started and the command itself), stdin,
    stdout, stderr, report, wall_s, idle_s, stdout_bytes, grace_s; folder, which may be null, and if
    not, memory_bytes, processes, and disk_bytes for the files in it. Each byte that follows says
    that there was progress which the streams do not show; the end of standard input stops the
    command. Report: rc (negative for a signal), stop (a word of ``_watch``, or null), survivors
    (processes that outlived the command; null when they died uncounted with their namespace),
    wall_s. A command that cannot start: ``error``.
    """
    spec = json.loads(sys.stdin.buffer.readline())
    # Handlers, for two reasons: whoever ends this process ends the command first, and the command
    # starts with both signals at their default, though a shell in the background ignores SIGINT.
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: os.dup2(nothing, 0))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    started = time.monotonic()
    streams = [os.open(spec[name], _APPEND, 0o666) for name in ("stdout", "stderr")]
    try:
        child = _start(spec, streams)
    except OSError as error:
        _report(spec, {"error": f"{spec['argv'][0]}: {error.strerror}"})
        return
    try:
        stop = _watch(child, spec, streams, started)
        if stop in _AT_ONCE:
            child.kill()
            child.wait()
        elif stop is not None:
            _end(child, spec, streams)
    finally:
        swept = _sweep(child)
    wall_s = time.monotonic() - started
    survivors = None if spec["layers"] else swept
    _report(spec, {"rc": child.returncode, "stop": stop, "survivors": survivors, "wall_s": wall_s})


def _start(spec: dict[str, Any], streams: list[int]) -> subprocess.Popen[bytes]:
    with Path(spec["stdin"]).open("rb") as source:
        return subprocess.Popen(
            spec["argv"],
            cwd=spec["cwd"],
            env=spec["env"],
            stdin=source,
            stdout=streams[0],
            stderr=streams[1],
            start_new_session=True,
        )


def _watch(
    child: subprocess.Popen[bytes], spec: dict[str, Any], streams: list[int], started: float
) -> str | None:
    """Wait for the end; the word for the limit that was reached, ``None`` for an end of its own.

    wall, idle, output, memory, processes, disk; caller, when that one wants the end.
    """
    size, changed = 0, started
    used = _Used(spec)
    while child.poll() is None:
        now = time.monotonic()
        grown = _written(streams)
        if grown != size:
            size, changed = grown, now
        if now - started > spec["wall_s"]:
            return "wall"
        if now - changed > spec["idle_s"]:
            return "idle"
        if size > spec["stdout_bytes"]:
            return "output"
        beyond = used.beyond(now)
        if beyond is not None:
            return beyond
        word = _word()
        if word == b"":
            return "caller"
        if word is not None:
            changed = time.monotonic()
    return None


class _Used:
    """What the command and all that it has started use, looked at now and then."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.spec = spec
        self.due = 0.0
        self.disk_due = 0.0

    def beyond(self, now: float) -> str | None:
        """The word for the cap that is passed, if one is."""
        if self.spec["folder"] is None or now < self.due:
            return None
        self.due = now + _LOOK_S
        alive = _descendants(os.getpid())
        if len(alive) > self.spec["processes"]:
            return "processes"
        # The quick sum counts what they share for each of them.
        most = self.spec["memory_bytes"]
        if sum(map(_resident, alive)) > most and sum(map(_own, alive)) > most:
            return "memory"
        if now < self.disk_due:
            return None
        held = _size(self.spec["folder"])
        self.disk_due = now + max(_LOOK_S, (time.monotonic() - now) / _LOOK_SHARE)
        return "disk" if held > self.spec["disk_bytes"] else None


def _resident(pid: int) -> int:
    """Bytes of a process in memory, what it shares with others included."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    return 0


def _own(pid: int) -> int:
    """Bytes of a process in memory, its part of what it shares; all of that where nobody tells."""
    with suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) << 10
    return _resident(pid)


def _size(folder: str) -> int:
    """Bytes on the disk below a folder; no link is followed."""
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(path, name)).st_blocks * 512  # noqa: PTH118
    return total


def _written(streams: list[int]) -> int:
    # Not by their names: the command may be able to give those to something else.
    return sum(os.fstat(stream).st_size for stream in streams)


def _word() -> bytes | None:
    """What the caller says within a moment: empty when it is gone or wants the end."""
    return os.read(0, 4096) if select.select([0], [], [], _POLL_S)[0] else None


def _end(child: subprocess.Popen[bytes], spec: dict[str, Any], streams: list[int]) -> None:
    """Interrupt the command itself, then ask all of its group to go, then kill.

    An interrupted product may still tell what it has spent; a killed one cannot.
    """
    leader = _leader(child.pid, spec["layers"])
    for number, tell in (
        (signal.SIGINT, os.kill),
        (signal.SIGTERM, _kill_group),
        (signal.SIGKILL, _kill_group),
    ):
        with suppress(ProcessLookupError):
            tell(leader, number)
        if _gone(child, spec, streams):
            return
    # The first process may be an outer layer with a group of its own.
    child.kill()
    child.wait()


def _gone(child: subprocess.Popen[bytes], spec: dict[str, Any], streams: list[int]) -> bool:
    """Whether it ends in the time of grace; one that floods the disk meanwhile has none."""
    deadline = time.monotonic() + spec["grace_s"]
    while child.poll() is None:
        if time.monotonic() > deadline or _written(streams) > 2 * spec["stdout_bytes"]:
            return False
        time.sleep(_POLL_S)
    return True


def _kill_group(pid: int, number: signal.Signals) -> None:
    os.killpg(os.getpgid(pid), number)


def _leader(pid: int, layers: int) -> int:
    """The command itself: below each layer the process that was started first."""
    for _ in range(layers):
        below = _children().get(pid)
        if not below:
            break
        pid = min(below, key=lambda one: one[1])[0]
    return pid


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
        time.sleep(_POLL_S / 4)
    _reap()
    return len(found)


def _reap() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _descendants(root: int) -> set[int]:
    children = _children()
    found: set[int] = set()
    pending = [root]
    while pending:
        below = [pid for pid, _ in children.get(pending.pop(), ())]
        found.update(below)
        pending += below
    return found


def _children() -> dict[int, list[tuple[int, int]]]:
    """For each parent its living children, each with the time of its start."""
    children: dict[int, list[tuple[int, int]]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            # State and parent are the fields after the command's name, which may hold anything.
            fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
            if fields[0] in _DEAD:
                continue
            children.setdefault(int(fields[1]), []).append((int(entry.name), int(fields[19])))
    return children


def _report(spec: dict[str, Any], report: dict[str, Any]) -> None:
    temporary = Path(spec["report"] + ".tmp")
    temporary.write_text(json.dumps(report))
    temporary.replace(spec["report"])


if __name__ == "__main__":
    main()
