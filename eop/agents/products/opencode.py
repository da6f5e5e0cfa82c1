"""opencode, headless: ``opencode run --format json`` (measured with 1.18.33).

It has no final event: a step that ends without asking for tools is its last word.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from eop.agents.contract import Command, Status, Usage
from eop.agents.events import Event, Kind, usage_event
from eop.agents.failures import classify
from eop.agents.fields import add, count, mapping, money, text
from eop.agents.products.program import RealProduct, endpoint_of
from eop.agents.stream import json_lines
from eop.agents.workspace import Workspace
from eop.core.errors import EopError

if TYPE_CHECKING:
    from eop.agents.contract import Recording, Request

NAME = "opencode"
_OWN_FOLDER = ".opencode"
_PROVIDER, _KEY = "rt", "RT_KEY"
_CAPABILITIES = MappingProxyType(
    {
        **dict.fromkeys(("read", "grep", "glob", "list"), "read"),
        **dict.fromkeys(("edit", "write", "patch", "apply_patch", "multiedit"), "edit"),
        "bash": "shell", "task": "subagents", "webfetch": "web", "websearch": "web",
    }
)  # fmt: skip
_GOES_ON = frozenset({"tool-calls", "tool_calls", "tool_use"})
_BROKEN_OFF = {"content-filter": Status.REFUSED, "error": None, "failed": None}
_NO_SUCH_TOOL = "invalid"
_DENIED = ("rejected permission", "rule which prevents")


class OpenCode(RealProduct):
    """Runs the native program; configuration comes in the environment, none from the project."""

    name = NAME
    vendor = "opencode"

    def command(self, request: Request) -> Command:
        """Every permission is said to be allowed or denied, so that none is asked for.

        ``EopError`` for a repository with a folder of its own: nothing keeps it from running the
        plugins there.
        """
        space = Workspace(request.directory)
        if (space.tree / _OWN_FOLDER).exists():
            raise EopError(
                "EOP877",
                f"the repository has a folder {_OWN_FOLDER}, whose plugins opencode would run",
                hint="take it out of the target's snapshot, or give the node another product",
            )
        endpoint = endpoint_of(request)
        program = self.settings.program(NAME)
        argv = [
            str(program), "run", "--format", "json", "--pure",
            "-m", f"{_PROVIDER}/{self.settings.model}",
            *(["--variant", self.settings.effort] if self.settings.effort else []),
        ]  # fmt: skip
        env = {
            "OPENCODE_CONFIG_CONTENT": json.dumps(self._config(request, space, endpoint.url)),
            _KEY: endpoint.token,
            **{f"XDG_{kind}_HOME": str(space.home / f".{kind.lower()}")
               for kind in ("CACHE", "CONFIG", "DATA", "STATE")},
            **dict.fromkeys(
                (
                    "OPENCODE_DISABLE_AUTOUPDATE", "OPENCODE_DISABLE_CLAUDE_CODE",
                    "OPENCODE_DISABLE_DEFAULT_PLUGINS", "OPENCODE_DISABLE_EXTERNAL_SKILLS",
                    "OPENCODE_DISABLE_LSP_DOWNLOAD", "OPENCODE_DISABLE_MODELS_FETCH",
                    "OPENCODE_DISABLE_PROJECT_CONFIG", "OPENCODE_DISABLE_SHARE",
                ),
                "1",
            ),
        }  # fmt: skip
        return Command(
            tuple(argv), env, read=(program, *self.settings.package_dirs), secrets=(endpoint.token,)
        )

    def _config(self, request: Request, space: Workspace, url: str) -> dict[str, Any]:
        def allow(capability: str) -> str:
            return "allow" if capability in request.capabilities else "deny"

        leaves_files = bool(request.outputs) and request.answer is None
        edit = {"*": allow("edit"), **({f"{space.outputs}/**": "allow"} if leaves_files else {})}
        return {
            "provider": {
                _PROVIDER: {
                    "npm": "@ai-sdk/openai-compatible",
                    "options": {"baseURL": url, "apiKey": f"{{env:{_KEY}}}"},
                    "models": {self.settings.model: {}},
                }
            },
            "permission": {
                **dict.fromkeys(("read", "grep", "glob", "list"), allow("read")),
                "edit": edit,
                "bash": allow("shell"),
                **dict.fromkeys(("task", "webfetch", "websearch"), "deny"),
                "external_directory": {
                    "*": "deny", f"{space.inputs}/**": "allow", f"{space.outputs}/**": "allow",
                },
            },
            # A call to the model of which its stream says nothing: no usage, no step.
            "agent": {"title": {"disable": True}},
            "snapshot": False,
            "share": "disabled",
        }  # fmt: skip

    def parse(self, recording: Recording) -> list[Event]:
        """Events of the stream; usage is the sum of its steps."""
        run = _Run([], {}, [])
        for line in json_lines(recording.stdout):
            _line(run, line or {})
        # Of the steps of a subagent it tells nothing.
        subagents = _subagents(run)
        complete = run.final is not None and not subagents
        tail = [usage_event(_usage(run.steps, complete=complete), subagents=subagents)]
        if run.final is not None:
            tail.append(Event(Kind.FINAL, run.final))
        return [*run.events, *tail]


@dataclass
class _Run:
    """What a stream holds: events in order, tool calls by id, finished steps."""

    events: list[Event]
    calls: dict[str, Event]
    steps: list[dict[str, Any]]
    answer: str = ""
    final: dict[str, Any] | None = None


def _line(run: _Run, line: dict[str, Any]) -> None:
    # What an event tells lies in its part; older versions have it beside the type.
    part = mapping(line, "part") or line
    match text(line, "type"):
        case "step_start":
            run.final = None
            if not run.steps and not run.calls:
                run.events.append(Event(Kind.STARTED, {"session_id": text(line, "sessionID")}))
        case "text":
            run.answer = text(part, "text")
            run.events.append(Event(Kind.MESSAGE, {"text": run.answer}))
        case "tool_use":
            _tool(run, part)
        case "step_finish":
            run.steps.append(part)
            run.events.append(Event(Kind.MODEL_CALL, {"id": text(part, "id")}))
            run.final = _end_of_step(text(part, "reason"), run.answer)
        case "error":
            run.final = _error(mapping(line, "error"))
        case _:
            run.events.append(Event(Kind.OTHER, {"raw": line}))


def _end_of_step(reason: str, answer: str) -> dict[str, Any] | None:
    if reason in _GOES_ON:
        return None
    if reason in _BROKEN_OFF:
        return {"status": "error", "error": _BROKEN_OFF[reason], "code": reason, "detail": answer}
    return {"status": "success", "text": answer}


def _tool(run: _Run, part: dict[str, Any]) -> None:
    state, name = mapping(part, "state"), text(part, "tool", "name")
    identity = text(part, "callID", "id")
    # A call of a tool that does not exist is told as a success of this one.
    failed = text(state, "status") == "error" or name == _NO_SUCH_TOOL
    refused = failed and any(word in text(state, "error", "output") for word in _DENIED)
    data = {
        "id": identity,
        "name": name,
        "capability": _CAPABILITIES.get(name, "other"),
        "target": text(state.get("input"), "filePath", "command", "pattern", "path")[:200],
        "outcome": "denied" if refused else "failed" if failed else "ok",
    }
    known = run.calls.get(identity)
    if known is not None and identity:
        known.data.update(data)
        return
    call = Event(Kind.TOOL_CALL, data)
    run.calls[identity or f"#{len(run.calls)}"] = call
    run.events.append(call)


def _error(error: dict[str, Any]) -> dict[str, Any]:
    data = mapping(error, "data")
    detail = text(data, "message") or text(error, "message", "name")
    failure = classify(detail, count(data, "statusCode"))
    if failure.status is None:
        failure = classify(f"{text(error, 'name')}: {detail}")
    return {
        "status": "error", "error": failure.status, "code": text(error, "name") or "product",
        "detail": detail, "http_status": failure.http_status, "source": failure.source,
    }  # fmt: skip


def _subagents(run: _Run) -> int:
    return sum(call.data["capability"] == "subagents" for call in run.calls.values())


def _usage(steps: list[dict[str, Any]], *, complete: bool) -> Usage:
    """The sum of the steps. Here the input is what was not cached; a cost of 0 is no price."""
    if not steps:
        return Usage()
    tokens = [mapping(step, "tokens") for step in steps]
    caches = [mapping(one, "cache") for one in tokens]
    read = add(*(count(cache, "read") for cache in caches))
    write = add(*(count(cache, "write") for cache in caches))
    reasoning = add(*(count(one, "reasoning") for one in tokens))
    cost = sum(money(step, "cost") or 0.0 for step in steps)
    return Usage(
        input=add(*(count(one, "input") for one in tokens), read, write),
        cache_read=read,
        cache_write=write,
        output=add(*(count(one, "output") for one in tokens), reasoning),
        reasoning=reasoning,
        usd=cost or None,
        usd_basis="product-list" if cost else "none",
        source="final" if complete else "stream-lower-bound",
        complete=complete,
    )
