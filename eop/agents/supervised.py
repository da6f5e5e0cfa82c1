"""Processes of agents and candidates, each from start to end under a supervisor of its own."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eop.agents import events as told
from eop.agents import status, supervisor
from eop.agents.contract import Limits, Stop, Times, Usage
from eop.agents.stream import size_of
from eop.core.errors import EopError, ExitCode
from eop.core.files import read_json, write_json
from eop.core.processes import Completed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from eop.agents.contract import Product, Request
    from eop.agents.jail import Jail
    from eop.agents.workspace import Workspace

_STOPS = {
    "wall": Stop.TIMEOUT,
    "idle": Stop.IDLE,
    "output": Stop.OUTPUT_CAP,
    "memory": Stop.MEMORY,
    "processes": Stop.PROCESSES,
    "disk": Stop.DISK,
    "caller": Stop.CANCELLED,
}
# A product that has reported its end and says nothing more has this long to go.
_LINGER_S = 10.0
_POLL_S = 0.1
_WATCHED = ("wall_s", "idle_s", "stdout_bytes", "grace_s", "processes", "disk_bytes")
_MEMORY = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
# Counting re-reads the stream; it may take this share of the time between two counts.
_COUNTING_SHARE = 0.1


@dataclass(frozen=True)
class Ended:
    """How a process ended: ``error`` when it did not start, ``stop`` when the runtime ended it.

    ``lingered``: it had reported its end and would not go. ``survivors`` is ``None`` where they
    died uncounted.
    """

    error: str | None
    rc: int | None
    stop: Stop | None
    lingered: bool
    survivors: int | None
    times: Times


def run(
    product: Product,
    request: Request,
    space: Workspace,
    jail: Jail,
    argv: Sequence[str],
    env: Mapping[str, str],
    traffic: Callable[[], int] | None = None,
) -> Ended:
    """Run the confined command ``argv`` in the workspace until it ends or must be stopped.

    ``traffic`` is the gateway's count of what its model answers: when it grows, there is progress.
    """
    folder = space.directory
    spec = {
        "argv": list(argv),
        "env": dict(env),
        "layers": jail.layers,
        "cwd": str(space.tree),
        "stdin": str(space.prompt),
        "stdout": str(folder / "stdout"),
        "stderr": str(folder / "stderr"),
        "report": str(folder / "exit.json"),
        "folder": str(folder),
        "memory_bytes": int(request.limits.memory_share * _MEMORY),
        **{name: getattr(request.limits, name) for name in _WATCHED},
    }
    # The values may be secret: they go through the pipe, and only the names are kept.
    write_json(folder / "start.json", {**spec, "env": sorted(env), "jail": jail.level()})
    started = time.time()
    watch = _Watch(product, request, space, traffic)
    with (folder / "start.json").open() as held:
        # Shared with the supervisor: free when neither is alive, and `orphaned` waits for that.
        fcntl.flock(held, fcntl.LOCK_EX)
        stopped = _supervise(spec, watch, (held.fileno(),))
    for name in ("stdout", "stderr"):
        _cut(folder / name, 2 * request.limits.stdout_bytes)
    report = read_json(folder / "exit.json")
    stop = _STOPS.get(report.get("stop"))
    by_us = stop is Stop.CANCELLED and stopped is not None
    return Ended(
        error=report.get("error"),
        rc=report.get("rc"),
        stop=stopped.stop if by_us and stopped else stop,
        lingered=by_us and stopped is _LINGERS,
        survivors=report.get("survivors", 0),
        times=Times(started, watch.first_event, time.time(), report.get("wall_s", 0.0)),
    )


def bounded(
    argv: Sequence[str],
    *,
    layers: int = 0,
    cwd: Path,
    env: Mapping[str, str],
    stdout: Path,
    stderr: Path,
    wall_s: float,
    most_bytes: int,
) -> tuple[Completed, Stop | None]:
    """Run a command that is no agent; it dies with all that it has started, and with its caller.

    ``layers`` are those of its jail, ``most_bytes`` the most that its streams may hold together.
    Whatever stands in the place of a stream is replaced: a link there would lead this process out.
    Returns how it ended, and why it was stopped if it was. ``EopError`` when it cannot start.
    """
    for stream in (stdout, stderr):
        stream.parent.mkdir(parents=True, exist_ok=True)
        _clear(stream)
    with tempfile.TemporaryDirectory(prefix="eop-") as own:
        report = Path(own, "exit.json")
        spec = {
            "argv": list(argv),
            "env": dict(env),
            "layers": layers,
            "cwd": str(cwd),
            "stdin": os.devnull,
            "stdout": str(stdout),
            "stderr": str(stderr),
            "report": str(report),
            "wall_s": wall_s,
            "idle_s": wall_s,
            "stdout_bytes": most_bytes,
            "grace_s": Limits.grace_s,
            "folder": None,
        }
        _supervise(spec, None)
        ended = read_json(report)
    if "error" in ended:
        raise EopError("EOP868", ended["error"], exit_code=ExitCode.ENVIRONMENT)
    stop = _STOPS.get(ended["stop"])
    timed_out = stop in (Stop.TIMEOUT, Stop.IDLE)
    return Completed(ended["rc"], ended["wall_s"], timed_out), stop


def _clear(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _supervise(
    spec: dict[str, Any], watch: _Watch | None, shared: Sequence[int] = ()
) -> _Stopped | None:
    """Why this process had the command stopped, if it did; ``shared`` are open files for both."""
    # A pipe that only this process holds: when it dies, the supervisor sees the end of it.
    with subprocess.Popen(
        [sys.executable, "-I", "-S", supervisor.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        pass_fds=shared,
    ) as guard:
        assert guard.stdin is not None and guard.stderr is not None
        guard.stdin.write(json.dumps(spec).encode() + b"\n")
        guard.stdin.flush()
        stopped = _wait(guard, watch) if watch else None
        said = guard.stderr.read().decode(errors="replace")
    if guard.returncode:
        raise EopError("EOP866", f"the supervisor of a process failed: {said.strip()}")
    return stopped


def _cut(path: Path, most: int) -> None:
    """What was written between the look at a stream and the end of its writer may be a flood."""
    with suppress(FileNotFoundError):
        if path.stat().st_size > most:
            os.truncate(path, most)


@dataclass(frozen=True)
class _Stopped:
    """Why this process had the supervisor stop the product; ``None`` is no fault of its own."""

    stop: Stop | None


_LINGERS, _OVER_BUDGET = _Stopped(None), _Stopped(Stop.BUDGET)


class _Watch:
    """Looks at a running product, now and then: its progress, and what bounds it."""

    def __init__(
        self,
        product: Product,
        request: Request,
        space: Workspace,
        traffic: Callable[[], int] | None,
    ) -> None:
        self.product, self.limits, self.space = product, request.limits, space
        self.traffic = traffic
        self.first_event: float | None = None
        self._unseen = 0
        self._size = 0
        self._due = 0.0
        self._quiet_since: float | None = None

    def progress(self) -> bool:
        """Whether there was any since the last look that the supervisor cannot see."""
        recording = self.space.recording(self.product.sessions)
        seen = sum(map(size_of, recording.sessions))
        seen += self.traffic() if self.traffic else 0
        unseen, self._unseen = self._unseen, seen
        return seen != unseen

    def look(self) -> _Stopped | None:
        """Whether the product must be stopped now."""
        stdout = self.space.directory / "stdout"
        now = time.monotonic()
        size = size_of(stdout) + self._unseen
        if size == self._size:
            lingers = self._quiet_since is not None and now - self._quiet_since > _LINGER_S
            return _LINGERS if lingers else None
        if now < self._due:
            return None
        self._size = size
        self.first_event = self.first_event or time.time()
        events = self.product.parse(self.space.recording(self.product.sessions))
        self._quiet_since = now if told.final(events) is not None else None
        self._due = now + (time.monotonic() - now) / _COUNTING_SHARE
        usage, counters = told.usage(events), told.counters(events)
        if self.traffic:
            # What the gateway counts it holds itself, before each call.
            usage, counters = Usage(), replace(counters, model_calls=None)
        return _OVER_BUDGET if status.over_budget(self.limits, usage, counters) else None


def _wait(guard: subprocess.Popen[bytes], watch: _Watch) -> _Stopped | None:
    """Wait for the supervisor; why this process made it stop the product, if it did."""
    assert guard.stdin is not None
    while True:
        try:
            guard.wait(_POLL_S)
            return None
        except subprocess.TimeoutExpired:
            pass
        if watch.progress():
            with suppress(BrokenPipeError):
                guard.stdin.write(b".")
                guard.stdin.flush()
        stopped = watch.look()
        if stopped is not None:
            with suppress(BrokenPipeError):
                guard.stdin.close()
            guard.wait()
            return stopped
