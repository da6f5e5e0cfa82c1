"""OpenHands: its SDK in a process of its own, run by ``openhands_program.py`` (SDK 1.58.2).

The streams of its own command line (1.16.0) are understood as well, so that recordings of it can
be judged; it is not offered, because it reports success for everything and tells no usage.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from eop.agents.contract import Command, ProductFacts, Status, Usage
from eop.agents.events import Event, Kind, usage_event
from eop.agents.failures import Failure, classify
from eop.agents.fields import add, count, mapping, money, objects, text
from eop.agents.products.program import RealProduct, endpoint_of, together
from eop.agents.stream import json_file, json_lines, tail
from eop.agents.workspace import Workspace
from eop.core.canonical import digest, file_digest
from eop.protocol.products import UNDENIABLE

if TYPE_CHECKING:
    from eop.agents.contract import Recording, Request

NAME = "openhands"
PROGRAM = Path(__file__).with_name("openhands_program.py")
_DEFAULT_ITERATIONS = 500
_NO_ACTION = frozenset({"finish", "think"})
_VIEWS = frozenset({"view", "undo_edit"})
_BARE_KINDS = ("Event", "Observation")
# Lines of the command line for people; no line of JSON can look like them.
_NO_SETTINGS = re.compile(r"^Headless mode requires existing settings.*", re.MULTILINE)
_CLI_FINISHED = re.compile(r"^Agent finished\s*$", re.MULTILINE)
# By the name of the error, which says more than the SDK's own class of it.
_CODES = MappingProxyType(
    {
        "MaxIterationsReached": Status.BUDGET_EXHAUSTED,
        "MaxBudgetReached": Status.BUDGET_EXHAUSTED,
        "LLMContextWindowExceedError": Status.CONTEXT_OVERFLOW,
        "ContextWindowExceededError": Status.CONTEXT_OVERFLOW,
        "LLMAuthenticationError": Status.AUTH_ERROR,
        "AuthenticationError": Status.AUTH_ERROR,
        "PermissionDeniedError": Status.AUTH_ERROR,
        "LLMRateLimitError": Status.TRANSIENT_ERROR,
        "RateLimitError": Status.TRANSIENT_ERROR,
        "LLMTimeoutError": Status.TRANSIENT_ERROR,
        "Timeout": Status.TRANSIENT_ERROR,
        "LLMServiceUnavailableError": Status.TRANSIENT_ERROR,
        "ServiceUnavailableError": Status.TRANSIENT_ERROR,
        "InternalServerError": Status.TRANSIENT_ERROR,
        "APIConnectionError": Status.TRANSIENT_ERROR,
        "LLMNoResponseError": Status.TRANSIENT_ERROR,
        "LLMBadRequestError": Status.CONFIG_ERROR,
        "BadRequestError": Status.CONFIG_ERROR,
        "NotFoundError": Status.CONFIG_ERROR,
        "ContentPolicyViolationError": Status.REFUSED,
    }
)
_CLASSES = MappingProxyType(
    {
        "auth": Status.AUTH_ERROR,
        "config": Status.CONFIG_ERROR,
        "transient": Status.TRANSIENT_ERROR,
        "quota": Status.QUOTA_EXHAUSTED,
    }
)


class OpenHands(RealProduct):
    """``settings.binary`` is the Python of the environment in which the SDK is installed."""

    name = NAME
    vendor = "openhands"
    sessions = (".openhands/conversations/*/base_state.json",)

    def probe(self) -> ProductFacts:
        """The SDK's version; the digest covers the interpreter and our program."""
        facts = self.settings.facts(
            NAME, "-I", "-c", "import importlib.metadata as m; print(m.version('openhands-sdk'))"
        )
        return ProductFacts(NAME, facts.version, digest([facts.sha256, file_digest(PROGRAM)]))

    def command(self, request: Request) -> Command:
        """Isolated Python; the model's key comes in the environment and is taken out of it."""
        together(request, NAME, "read", UNDENIABLE[NAME]["read"])
        together(request, NAME, "edit", UNDENIABLE[NAME]["read"])
        space = Workspace(request.directory)
        endpoint = endpoint_of(request)
        tools = ["file_editor", *(["terminal"] if "shell" in request.capabilities else [])]
        spec = {
            "model": f"openai/{self.settings.model}",
            "base_url": endpoint.url,
            "effort": self.settings.effort,
            "tools": tools,
            "workspace": str(space.tree),
            "state": str(space.home / "state"),
            "iterations": request.limits.actions or _DEFAULT_ITERATIONS,
        }
        env = {
            "LLM_API_KEY": endpoint.token,
            "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_TELEMETRY": "False",
            "DO_NOT_TRACK": "1", "OPENHANDS_SUPPRESS_BANNER": "1", "PYTHONWARNINGS": "ignore",
            "TERM": "dumb",
        }  # fmt: skip
        python = self.settings.program(NAME)
        started = self.settings.started(NAME)
        argv = (str(started), "-I", str(PROGRAM), json.dumps(spec))
        environment = started.parent.parent
        return Command(
            argv,
            env,
            read=(python, environment, PROGRAM, *self.settings.package_dirs),
            secrets=(endpoint.token,),
        )

    def parse(self, recording: Recording) -> list[Event]:
        """Events of the SDK or of the command line; usage from the result or the session file."""
        run = _Run()
        for line in json_lines(recording.stdout):
            _line(run, line or {})
        states = [json_file(path) for path in recording.sessions]
        usage, calls, subagents = _usage(run, states)
        told = {} if calls is None else {"model_calls": calls}
        run.events.append(usage_event(usage, **told, subagents=subagents))
        final = _final(run, states, tail(recording.stdout, 65536))
        return [*run.events, *([Event(Kind.FINAL, final)] if final else [])]


@dataclass
class _Run:
    """What a stream holds: events in order, the error that ended it, the runner's result."""

    events: list[Event] = field(default_factory=list)
    calls: dict[str, Event] = field(default_factory=dict)
    failure: Failure | None = None
    result: dict[str, Any] | None = None
    answer: str = ""
    finished: bool = False
    of_runner: bool = False


def _line(run: _Run, line: dict[str, Any]) -> None:
    if text(line, "type") == "result":
        run.result = line
    elif text(line, "type") == "event":
        run.of_runner = True
        _event(run, mapping(line, "event"))
    elif text(line, "kind").endswith(_BARE_KINDS):
        _event(run, line)
    else:
        run.events.append(Event(Kind.OTHER, {"raw": line}))


def _event(run: _Run, event: dict[str, Any]) -> None:
    if not any(one.kind == Kind.STARTED for one in run.events):
        run.events.append(Event(Kind.STARTED, {}))
    match text(event, "kind"):
        case "ActionEvent":
            _action(run, event)
        case "ObservationEvent" | "AgentErrorEvent" | "UserRejectObservation":
            _observation(run, event)
        case "MessageEvent" if event.get("source") == "agent":
            parts = objects(mapping(event, "llm_message"), "content")
            run.answer = "\n".join(text(part, "text") for part in parts)
            run.events.append(Event(Kind.MESSAGE, {"text": run.answer}))
            _model_call(run, event)
        case "ConversationErrorEvent":
            run.failure = _failure(event)
        case _:
            run.events.append(Event(Kind.OTHER, {"raw": event}))


def _model_call(run: _Run, event: dict[str, Any]) -> None:
    identity = text(event, "llm_response_id")
    if identity:
        run.events.append(Event(Kind.MODEL_CALL, {"id": identity}))


def _action(run: _Run, event: dict[str, Any]) -> None:
    _model_call(run, event)
    action, name = mapping(event, "action"), text(event, "tool_name")
    if name in _NO_ACTION:
        run.answer = text(action, "message") or run.answer
        run.events.append(Event(Kind.OTHER, {"raw": event}))
        return
    identity = text(event, "tool_call_id", "id")
    call = Event(
        Kind.TOOL_CALL,
        {
            "id": identity,
            "name": name,
            "capability": _capability(name, action),
            "target": text(action, "path", "command")[:200],
            "outcome": "ok",
        },
    )
    run.calls[identity] = call
    run.events.append(call)


def _capability(name: str, action: dict[str, Any]) -> str:
    if name == "file_editor":
        return "read" if text(action, "command") in _VIEWS else "edit"
    return "shell" if name == "terminal" else "other"


def _observation(run: _Run, event: dict[str, Any]) -> None:
    observation = mapping(event, "observation")
    if text(event, "tool_name") == "finish" and observation.get("is_error") is not True:
        run.finished = True
    call = run.calls.get(text(event, "tool_call_id"))
    if call is None:
        return
    if text(event, "kind") == "UserRejectObservation":
        call.data["outcome"] = "denied"
    elif text(event, "kind") == "AgentErrorEvent" or observation.get("is_error") is True:
        call.data["outcome"] = "failed"


def _failure(event: dict[str, Any]) -> Failure:
    """By the name of the error, by its sentence, last by the class that the SDK gives it."""
    code, detail = text(event, "code", "class"), text(event, "detail", "message")
    found = classify(detail)
    if found.status is Status.BUDGET_EXHAUSTED:
        return found
    # A sentence may be more precise: a full context is a bad request, a spent quota a rate limit.
    precise = found.status in (Status.CONTEXT_OVERFLOW, Status.REFUSED) or (
        found.status is Status.QUOTA_EXHAUSTED and _CODES.get(code) is Status.TRANSIENT_ERROR
    )
    status = found.status if precise else _CODES.get(code) or found.status
    given = _CLASSES.get(text(mapping(event, "classification"), "kind"))
    return Failure(status or given, detail or code, found.http_status)


def _final(run: _Run, states: list[dict[str, Any]], said: str) -> dict[str, Any] | None:
    status = text(run.result, "status") or next(
        (text(state, "execution_status") for state in states), ""
    )
    failure = run.failure
    if failure is None and mapping(run.result, "error"):
        failure = _failure(mapping(run.result, "error"))
    if status == "stuck":
        failure = Failure(Status.STUCK, "it repeated itself")
    refused = _NO_SETTINGS.search(said)
    if refused and not run.of_runner:
        failure = Failure(Status.SETUP_ERROR, refused[0])
    if failure is not None:
        return {
            "status": "error", "error": failure.status, "detail": failure.detail,
            "http_status": failure.http_status, "source": failure.source,
        }  # fmt: skip
    if status == "error":
        return {"status": "error", "detail": "it ended with an error that it does not name"}
    # Our program always leaves a result; the command line only says that it is done.
    done = run.finished or _CLI_FINISHED.search(said) is not None
    if status == "finished" or (done and not status and not run.of_runner):
        return {"status": "success", "text": run.answer}
    return {"status": "error", "detail": f"it ended {status}"} if run.result else None


def _usage(run: _Run, states: list[dict[str, Any]]) -> tuple[Usage, int | None, int]:
    """Usage, model calls and subagents; each conversation has a session file of its own."""
    if run.result is not None:
        told = mapping(run.result, "usage")
        usage = _tokens([told], money(run.result, "cost_usd"), "final")
        return usage, count(run.result, "llm_calls"), 0
    metrics = [
        one
        for state in states
        for one in mapping(state, "stats", "usage_to_metrics").values()
        if isinstance(one, dict)
    ]
    if not metrics:
        return Usage(), None, 0
    totals = [mapping(one, "accumulated_token_usage") for one in metrics]
    costs = [money(one, "accumulated_cost") or 0.0 for one in metrics]
    calls = sum(len(objects(one, "token_usages")) for one in metrics)
    return _tokens(totals, sum(costs), "session-file"), calls, len(states) - 1


def _tokens(parts: list[dict[str, Any]], cost: float | None, source: str) -> Usage:
    """Here the input includes what was cached; a cost of 0 means that no price is known."""

    def of(name: str) -> int | None:
        return add(*(count(part, name) for part in parts))

    return Usage(
        input=of("prompt_tokens"),
        cache_read=of("cache_read_tokens"),
        cache_write=of("cache_write_tokens"),
        output=of("completion_tokens"),
        reasoning=of("reasoning_tokens"),
        usd=cost or None,
        usd_basis="product-list" if cost else "none",
        source=source,
        complete=True,
    )
