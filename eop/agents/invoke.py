"""One invocation of a product: start it confined, watch it, judge what it left."""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from eop.agents import events as told
from eop.agents import status
from eop.agents.answer import leave
from eop.agents.contract import Exit, Mode, Reason, Request, Result, Status
from eop.agents.events import Kind
from eop.agents.gateway.gateway import before
from eop.agents.gateway.ledger import disagreement, read_account
from eop.agents.gateway.prices import NO_PRICES
from eop.agents.inspection import PATCH_FILE, clean, inspect
from eop.agents.outputs import collect
from eop.agents.redact import Redactor
from eop.agents.retry import RETRIES
from eop.agents.scan import Caps
from eop.agents.stream import tail
from eop.agents.supervised import run
from eop.agents.workspace import Workspace
from eop.core.errors import EopError
from eop.core.files import write_json, write_text

if TYPE_CHECKING:
    from pathlib import Path

    from eop.agents.contract import Command, Product, ProductFacts, Recording
    from eop.agents.events import Event
    from eop.agents.gateway.prices import Prices
    from eop.agents.jail import Jail, Way
    from eop.agents.supervised import Ended

_PASSED_ON = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ")


def invoke(product: Product, request: Request, jail: Jail, prices: Prices = NO_PRICES) -> Result:
    """Run ``product`` on a prepared attempt folder and return what came of it.

    A product that calls a model does so through a gateway of this attempt, which keeps its account
    in USD by ``prices``. Whatever the product does ends in a ``Result``; ``EopError`` is for faults
    of the runtime. Leaves ``request.json``, ``stdout``, ``stderr``, ``events.jsonl``,
    ``patch.diff``, ``result.json`` and the gateway's ledger in the attempt's folder, none with a
    secret. When the caller dies, so does the product.
    """
    space = Workspace(request.directory)
    request = replace(request, jail=jail.level())
    write_json(space.request, request.to_json())
    with ExitStack() as stack:
        try:
            facts = product.probe()
            _require_capabilities(product, request)
            gateway = None
            upstream = request.endpoint or product.upstream()
            if upstream is not None:
                gateway = stack.enter_context(before(upstream, request, prices, jail))
                request = replace(request, endpoint=gateway.endpoint)
            command = product.command(request)
            _require_clean(product, command)
        except EopError as error:
            return _record(space, _not_started(str(error)))
        redactor = Redactor([*command.secrets, *([upstream.token] if upstream else [])])
        argv = _confined(command, request, space, jail, gateway.way if gateway else None)
        environment = _environment(command, space)
        traffic = gateway.traffic if gateway else None
        ended = run(product, request, space, jail, argv, environment, traffic)
    if ended.error is not None:
        return _record(space, _not_started(ended.error, facts))
    clean(space, redactor)
    return _record(space, _judge(product, request, space, facts, ended, redactor))


def _require_capabilities(product: Product, request: Request) -> None:
    beyond = sorted(set(request.capabilities) - product.capabilities)
    if beyond:
        raise EopError(
            "EOP865",
            f"product '{product.name}' cannot be held to: {', '.join(beyond)}",
            hint=f"it knows: {', '.join(sorted(product.capabilities))}",
        )


def _require_clean(product: Product, command: Command) -> None:
    """Every user of the machine may read a command line, and it is written down."""
    if any(secret in word for word in command.argv for secret in command.secrets):
        raise EopError(
            "EOP867",
            f"product '{product.name}' has a secret in its command line",
            hint="its adapter must hand it over in the environment",
        )


def _confined(
    command: Command, request: Request, space: Workspace, jail: Jail, way: Way | None
) -> list[str]:
    read = [*command.read, space.inputs, space.prompt, space.request]
    write = [space.outputs, space.home, space.tmp]
    (write if request.mode is Mode.WRITE else read).append(space.tree)
    return jail.wrap(command.argv, read=read, write=write, hidden=request.hidden, way=way)


def _environment(command: Command, space: Workspace) -> dict[str, str]:
    env = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    env |= {"HOME": str(space.home), "TMPDIR": str(space.tmp), "GIT_CONFIG_GLOBAL": os.devnull}
    return {**env, **command.env}


def _judge(
    product: Product,
    request: Request,
    space: Workspace,
    facts: ProductFacts,
    ended: Ended,
    redactor: Redactor,
) -> Result:
    recording = space.recording(product.sessions, ended.rc)
    events = tuple(product.parse(recording))
    final = told.final(events)
    if product.answers and request.answer and final and final.data.get("status") == "success":
        leave(space.outputs / request.answer.file, request.answer, final)
    made, violations = inspect(request, space, redactor, Caps())
    outputs, wrong = collect(space.outputs, request.outputs)
    account = read_account(space.directory)
    known = status.Facts(
        mode=request.mode,
        stop=ended.stop,
        rc=ended.rc,
        lingered=ended.lingered,
        violations=violations,
        events=events,
        limits=request.limits,
        missing=tuple(wrong),
        changed=bool(made.changes),
        complaint=tail(recording.stderr),
        counted=(account.usage, len(account.made)) if account else None,
        refused=account.refused if account else None,
    )
    decided, reason = status.decide(known)
    note = disagreement(account, told.usage(events)) if account else None
    _write_events(space, events)
    signal = -ended.rc if ended.rc is not None and ended.rc < 0 else None
    return Result(
        status=decided,
        reason=reason,
        retryable=RETRIES[decided].most > 0,
        usage=known.usage,
        patch=made,
        text=final.data.get("text") if final else None,
        structured=final.data.get("structured") if final else None,
        outputs=outputs,
        counters=replace(known.counters, survivors=ended.survivors),
        times=ended.times,
        exit=Exit(None if signal else ended.rc, signal, ended.stop),
        violations=violations,
        product=_reported(facts, events),
        notes=(note,) if note else (),
        trace=_trace(space, recording),
    )


def _reported(facts: ProductFacts, events: tuple[Event, ...]) -> ProductFacts:
    """With the model and the session that the product told, each where it told it first."""

    def first(name: str) -> str | None:
        found = (e.data.get(name) for e in events if e.kind == Kind.STARTED)
        return next((str(value) for value in found if value), None)

    return replace(facts, model_reported=first("model"), session_id=first("session_id"))


def _trace(space: Workspace, recording: Recording) -> dict[str, Path]:
    names = ("stdout", "stderr", "events.jsonl", PATCH_FILE)
    named = {name: path for name in names if (path := space.directory / name).is_file()}
    sessions = {f"session-{n}": path for n, path in enumerate(recording.sessions, 1)}
    return {**named, **sessions}


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
