"""One invocation of a product: start it confined, watch it, judge what it left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from eop.agents import patch, status, supervisor
from eop.agents.contract import (
    Event,
    Exit,
    Mode,
    Patch,
    ProductFacts,
    Reason,
    Request,
    Result,
    Spent,
    Status,
)
from eop.agents.outputs import collect
from eop.agents.scan import scan
from eop.agents.target import outside
from eop.agents.workspace import Workspace
from eop.core.canonical import file_digest
from eop.core.errors import EopError
from eop.core.files import read_json, write_json, write_text

if TYPE_CHECKING:
    from pathlib import Path

    from eop.agents.contract import Command, Product
    from eop.agents.jail import Jail

_PASSED_ON = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ")
_POLL_S = 0.1
# Counting re-reads the stream; it may take this share of the time between two counts.
_COUNTING_SHARE = 0.1


def invoke(product: Product, request: Request, jail: Jail) -> Result:
    """Run ``product`` on a prepared attempt folder and return what came of it.

    Whatever the product does ends in a ``Result``; ``EopError`` is for faults of the runtime.
    Leaves ``request.json``, ``stdout``, ``stderr``, ``events.jsonl`` and ``result.json`` in the
    attempt's folder. When the caller dies, so does the product.
    """
    space = Workspace(request.directory)
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
    stop: str | None
    survivors: int
    wall_s: float


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
    limits = request.limits
    spec = {
        **start,
        "cwd": str(space.tree),
        "stdin": str(space.prompt),
        "stdout": str(folder / "stdout"),
        "stderr": str(folder / "stderr"),
        "report": str(folder / "exit.json"),
        **{k: v for k, v in asdict(limits).items() if k != "actions"},
    }
    write_json(folder / "start.json", spec)
    # A pipe that only this process holds: when it dies, the supervisor sees the end of it.
    with subprocess.Popen(
        [sys.executable, "-I", "-S", supervisor.__file__, str(folder / "start.json")],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as guard:
        over = _count_until_end(guard, product, folder / "stdout", limits.actions)
        said = guard.stderr.read().decode(errors="replace") if guard.stderr else ""
    if guard.returncode:
        raise EopError("EOP866", f"the supervisor of an agent failed: {said.strip()}")
    report = read_json(folder / "exit.json")
    stop = "actions" if over and report.get("stop") == "caller" else report.get("stop")
    return _Ended(
        report.get("error"),
        report.get("rc"),
        stop,
        report.get("survivors", 0),
        report.get("wall_s", 0.0),
    )


def _count_until_end(
    guard: subprocess.Popen[bytes], product: Product, stdout: Path, cap: int | None
) -> bool:
    """Wait for the supervisor; true when the action cap made this process stop it."""
    seen, due = 0, 0.0
    while True:
        try:
            guard.wait(_POLL_S)
            return False
        except subprocess.TimeoutExpired:
            pass
        now = time.monotonic()
        size = stdout.stat().st_size if stdout.exists() else 0
        if cap is None or size == seen or now < due:
            continue
        seen = size
        if (status.actions(product.parse(stdout)) or 0) > cap and guard.stdin:
            guard.stdin.close()
            guard.wait()
            return True
        due = now + (time.monotonic() - now) / _COUNTING_SHARE


def _judge(
    product: Product, request: Request, space: Workspace, facts: ProductFacts, ended: _Ended
) -> Result:
    stdout = space.directory / "stdout"
    events = tuple(product.parse(stdout)) if stdout.exists() else ()
    made, violations = _inspect(request, space)
    outputs, wrong = collect(space.outputs, request.outputs)
    count = status.actions(events)
    cap = request.limits.actions
    decided, reason = status.decide(
        status.Facts(
            mode=request.mode,
            stop=ended.stop,
            rc=ended.rc,
            violations=tuple(violations),
            events=events,
            over_budget=cap is not None and count is not None and count > cap,
            missing=tuple(wrong),
            changed=bool(made.changes),
        )
    )
    _write_events(space, events)
    signal = -ended.rc if ended.rc is not None and ended.rc < 0 else None
    return Result(
        status=decided,
        reason=reason,
        usage=Spent(count, ended.wall_s, "stream", complete=ended.stop is None and signal is None),
        patch=made,
        outputs=outputs,
        counters={"denied": status.denied(events), "survivors": ended.survivors},
        exit=Exit(None if signal else ended.rc, signal, ended.stop, ended.survivors),
        violations=tuple(violations),
        product=facts,
        trace={n: space.directory / n for n in ("stdout", "stderr", "events.jsonl")},
    )


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
        Status.SETUP_ERROR,
        Reason("setup", detail),
        Spent(0, 0.0, "not started", complete=True),
        product=facts,
    )


def _record(space: Workspace, result: Result) -> Result:
    write_json(space.directory / "result.json", result.to_json())
    return result
