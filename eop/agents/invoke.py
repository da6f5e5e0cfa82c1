"""One invocation of a product: start it confined, watch it, judge what it left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from eop.agents import events as told
from eop.agents import patch, status, supervisor
from eop.agents.answer import leave
from eop.agents.contract import (
    Exit,
    Mode,
    Patch,
    Reason,
    Request,
    Result,
    Status,
    Stop,
    Times,
)
from eop.agents.events import Kind
from eop.agents.outputs import collect
from eop.agents.retry import RETRIES
from eop.agents.scan import scan
from eop.agents.stream import tail
from eop.agents.target import outside
from eop.agents.workspace import Workspace
from eop.core.canonical import file_digest
from eop.core.errors import EopError
from eop.core.files import read_json, write_json, write_text

if TYPE_CHECKING:
    from pathlib import Path

    from eop.agents.contract import Command, Product, ProductFacts, Recording
    from eop.agents.events import Event
    from eop.agents.jail import Jail

_STOPS = {
    "wall": Stop.TIMEOUT,
    "idle": Stop.IDLE,
    "output": Stop.OUTPUT_CAP,
    "caller": Stop.CANCELLED,
}
# A product that has reported its end and says nothing more has this long to go.
_LINGER_S = 10.0
_PASSED_ON = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ")
_POLL_S = 0.1
_WATCHED = ("wall_s", "idle_s", "stdout_bytes", "grace_s")
# Counting re-reads the stream; it may take this share of the time between two counts.
_COUNTING_SHARE = 0.1


def invoke(product: Product, request: Request, jail: Jail) -> Result:
    """Run ``product`` on a prepared attempt folder and return what came of it.

    Whatever the product does ends in a ``Result``; ``EopError`` is for faults of the runtime.
    Leaves ``request.json``, ``stdout``, ``stderr``, ``events.jsonl`` and ``result.json`` in the
    attempt's folder. When the caller dies, so does the product.
    """
    space = Workspace(request.directory)
    request = replace(request, jail=jail.level())
    write_json(space.request, request.to_json())
    try:
        facts = product.probe()
        _require_capabilities(product, request)
        command = product.command(request)
    except EopError as error:
        return _record(space, _not_started(str(error)))
    ended = _run(product, request, space, _confined(command, request, space, product, jail))
    if ended.error is not None:
        return _record(space, _not_started(ended.error, facts))
    return _record(space, _judge(product, request, space, facts, ended))


@dataclass(frozen=True)
class _Ended:
    """How the process ended, in the supervisor's words."""

    error: str | None
    rc: int | None
    stop: Stop | None
    lingered: bool
    survivors: int
    times: Times


def _require_capabilities(product: Product, request: Request) -> None:
    beyond = sorted(set(request.capabilities) - product.capabilities)
    if beyond:
        raise EopError(
            "EOP865",
            f"product '{product.name}' cannot be held to: {', '.join(beyond)}",
            hint=f"it knows: {', '.join(sorted(product.capabilities))}",
        )


def _confined(
    command: Command, request: Request, space: Workspace, product: Product, jail: Jail
) -> dict[str, Any]:
    read = [*command.read, space.inputs, space.prompt, space.request]
    write = [space.outputs, space.home, space.tmp]
    (write if request.mode is Mode.WRITE else read).append(space.tree)
    argv = jail.wrap(
        command.argv, read=read, write=write, hidden=request.hidden, network=product.network
    )
    env = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    env |= {"HOME": str(space.home), "TMPDIR": str(space.tmp), "GIT_CONFIG_GLOBAL": os.devnull}
    return {"argv": argv, "env": {**env, **command.env}}


def _run(product: Product, request: Request, space: Workspace, start: dict[str, Any]) -> _Ended:
    folder = space.directory
    spec = {
        **start,
        "cwd": str(space.tree),
        "stdin": str(space.prompt),
        "stdout": str(folder / "stdout"),
        "stderr": str(folder / "stderr"),
        "report": str(folder / "exit.json"),
        **{name: getattr(request.limits, name) for name in _WATCHED},
    }
    # The values may be secret: they go through the pipe, and only the names are kept.
    write_json(folder / "start.json", {**spec, "env": sorted(spec["env"])})
    started = time.time()
    # A pipe that only this process holds: when it dies, the supervisor sees the end of it.
    with subprocess.Popen(
        [sys.executable, "-I", "-S", supervisor.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as guard:
        assert guard.stdin is not None and guard.stderr is not None
        guard.stdin.write(json.dumps(spec).encode() + b"\n")
        guard.stdin.flush()
        watch = _Watch(product, request, space)
        stopped = _wait(guard, watch)
        said = guard.stderr.read().decode(errors="replace")
    if guard.returncode:
        raise EopError("EOP866", f"the supervisor of an agent failed: {said.strip()}")
    report = read_json(folder / "exit.json")
    stop = _STOPS.get(report.get("stop"))
    by_us = stop is Stop.CANCELLED and stopped is not None
    return _Ended(
        error=report.get("error"),
        rc=report.get("rc"),
        stop=stopped.stop if by_us and stopped else stop,
        lingered=by_us and stopped is _LINGERS,
        survivors=report.get("survivors", 0),
        times=Times(started, watch.first_event, time.time(), report.get("wall_s", 0.0)),
    )


@dataclass(frozen=True)
class _Stopped:
    """Why this process had the supervisor stop the product; ``None`` is no fault of its own."""

    stop: Stop | None


_LINGERS, _OVER_BUDGET = _Stopped(None), _Stopped(Stop.BUDGET)


class _Watch:
    """Reads a running product's stream, now and then, for what bounds it."""

    def __init__(self, product: Product, request: Request, space: Workspace) -> None:
        self.product, self.limits, self.space = product, request.limits, space
        self.first_event: float | None = None
        self._size = 0
        self._due = 0.0
        self._quiet_since: float | None = None

    def look(self) -> _Stopped | None:
        """Whether the product must be stopped now."""
        stdout = self.space.directory / "stdout"
        now = time.monotonic()
        size = stdout.stat().st_size if stdout.exists() else 0
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
        return _OVER_BUDGET if status.over_budget(self.limits, tuple(events)) else None


def _wait(guard: subprocess.Popen[bytes], watch: _Watch) -> _Stopped | None:
    """Wait for the supervisor; why this process made it stop the product, if it did."""
    while True:
        try:
            guard.wait(_POLL_S)
            return None
        except subprocess.TimeoutExpired:
            pass
        stopped = watch.look()
        if stopped is not None and guard.stdin:
            guard.stdin.close()
            guard.wait()
            return stopped


def _judge(
    product: Product, request: Request, space: Workspace, facts: ProductFacts, ended: _Ended
) -> Result:
    recording = space.recording(product.sessions, ended.rc)
    events = tuple(product.parse(recording))
    final = told.final(events)
    if product.answers and request.answer and final and final.data.get("status") == "success":
        leave(space.outputs / request.answer.file, request.answer, final)
    made, violations = _inspect(request, space)
    outputs, wrong = collect(space.outputs, request.outputs)
    decided, reason = status.decide(
        status.Facts(
            mode=request.mode,
            stop=ended.stop,
            rc=ended.rc,
            lingered=ended.lingered,
            violations=tuple(violations),
            events=events,
            limits=request.limits,
            missing=tuple(wrong),
            changed=bool(made.changes),
            complaint=tail(recording.stderr),
        )
    )
    _write_events(space, events)
    signal = -ended.rc if ended.rc is not None and ended.rc < 0 else None
    return Result(
        status=decided,
        reason=reason,
        retryable=RETRIES[decided].most > 0,
        usage=told.usage(events),
        patch=made,
        text=final.data.get("text") if final else None,
        structured=final.data.get("structured") if final else None,
        outputs=outputs,
        counters=replace(told.counters(events), survivors=ended.survivors),
        times=ended.times,
        exit=Exit(None if signal else ended.rc, signal, ended.stop),
        violations=tuple(violations),
        product=_reported(facts, events),
        trace=_trace(space, recording),
    )


def _reported(facts: ProductFacts, events: tuple[Event, ...]) -> ProductFacts:
    """With the model and the session that the product told, each where it told it first."""

    def first(name: str) -> str | None:
        found = (e.data.get(name) for e in events if e.kind == Kind.STARTED)
        return next((str(value) for value in found if value), None)

    return replace(facts, model_reported=first("model"), session_id=first("session_id"))


def _trace(space: Workspace, recording: Recording) -> dict[str, Path]:
    named = {name: space.directory / name for name in ("stdout", "stderr", "events.jsonl")}
    sessions = {f"session-{n}": path for n, path in enumerate(recording.sessions, 1)}
    return {**named, **sessions}


def _inspect(request: Request, space: Workspace) -> tuple[Patch, list[str]]:
    """The change that was made, and every rule that it breaks."""
    violations = list(scan(space.tree).problems)
    tree = patch.commit_tree(request.store, space.tree)
    changes = patch.changes(request.store, request.base, tree)
    paths = [change.path for change in changes]
    if request.mode is Mode.READ_ONLY:
        violations += [f"{path}: changed by a read-only node" for path in paths]
    else:
        violations += [f"{path}: protected" for path in outside(request.editable, paths)]
    for prior in request.inputs:
        if not prior.path.is_file() or file_digest(prior.path) != prior.sha256:
            violations.append(f"{prior.path.name}: input was changed")
    return Patch(request.base, tree, changes), violations


def _write_events(space: Workspace, events: tuple[Event, ...]) -> None:
    lines = [json.dumps({**event.data, "kind": event.kind}) + "\n" for event in events]
    write_text(space.directory / "events.jsonl", "".join(lines))


def _not_started(detail: str, facts: ProductFacts | None = None) -> Result:
    return Result(
        Status.SETUP_ERROR, Reason("setup", detail), RETRIES[Status.SETUP_ERROR].most > 0,
        product=facts,
    )  # fmt: skip


def _record(space: Workspace, result: Result) -> Result:
    write_json(space.directory / "result.json", result.to_json())
    return result
