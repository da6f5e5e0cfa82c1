"""Codex, headless: ``codex exec --json`` (measured with 0.171.0).

Its JSON stream leaves out commands that its sandbox denied, and loses the usage of a turn that
failed or was stopped. Its session file (the rollout) has both: actions and usage come from there.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from eop.agents.contract import Command, Mode, Usage
from eop.agents.events import Event, Kind, usage_event
from eop.agents.failures import classify
from eop.agents.fields import add, count, mapping, objects, text
from eop.agents.forms import strict_form
from eop.agents.jail import Level
from eop.agents.products.program import RealProduct, endpoint_of, together
from eop.agents.stream import json_lines, tail
from eop.agents.workspace import Workspace
from eop.protocol.products import UNDENIABLE

if TYPE_CHECKING:
    from pathlib import Path

    from eop.agents.contract import Recording, Request

NAME = "codex"
_KEY = "RT_KEY"
_ITEMS = {
    "command_execution": "shell",
    "file_change": "edit",
    "mcp_tool_call": "other",
    "web_search": "web",
}
_EDITS = frozenset({"apply_patch"})
_STILL_TRYING = "Reconnecting"
_REJECTED = re.compile(r"rejected by user approval|patch rejected|blocked by .*sandbox")
_EXIT_CODE = re.compile(r"(?:exited with code|Exit code:) (-?\d+)")
_SANDBOXED = re.compile(r"Read-only file system|Operation not permitted")
_OFF = (
    "unbounded_connection_retries", "multi_agent", "apps", "plugins", "hooks", "goals",
)  # fmt: skip


class Codex(RealProduct):
    """Runs the native program in its own sandbox, inside the jail."""

    name = NAME
    vendor = "openai"
    sessions = (".codex/sessions/**/rollout-*.jsonl",)

    def command(self, request: Request) -> Command:
        """Project settings are ignored; the sandbox is read-only unless something is to be left."""
        together(request, NAME, "shell", UNDENIABLE[NAME]["shell"])
        space = Workspace(request.directory)
        endpoint = endpoint_of(request)
        home = space.home / ".codex"
        home.mkdir(exist_ok=True)
        provider = {
            "name": "rt", "base_url": endpoint.url, "env_key": _KEY, "wire_api": "responses",
            "request_max_retries": 1, "stream_max_retries": 1, "stream_idle_timeout_ms": 60000,
        }  # fmt: skip
        program = self.settings.program(NAME)
        argv = [
            str(program), "exec", "--json", "--color", "never", "-m", self.settings.model,
            "--ignore-user-config", "--ignore-rules", "--skip-git-repo-check",
            "-c", 'model_provider="rt"', "-c", f"model_providers.rt={_inline_table(provider)}",
            *(word for feature in _OFF for word in ("--disable", feature)),
            "-c", 'shell_environment_policy.inherit="core"', "-c", "allow_login_shell=false",
            "-c", "project_doc_max_bytes=0", "-c", 'web_search="disabled"',
            "-c", "check_for_update_on_startup=false", "-c", "analytics.enabled=false",
            *self._effort(), *_sandbox(request, space), *_schema(request, space), "-",
        ]  # fmt: skip
        env = {"CODEX_HOME": str(home), _KEY: endpoint.token}
        return Command(
            tuple(argv), env, read=(program, *self.settings.package_dirs), secrets=(endpoint.token,)
        )

    def _effort(self) -> list[str]:
        effort = self.settings.effort
        return ["-c", f'model_reasoning_effort="{effort}"'] if effort else []

    def parse(self, recording: Recording) -> list[Event]:
        """Events of the stream, with the actions and the usage of the session file."""
        stream = _read_stream(recording.stdout)
        rollout = _read_rollouts(recording.sessions, stream.thread, stream.turns)
        # The fuller source: a session file that was cut short must not hide what the stream has.
        fuller = rollout.calls if len(rollout.calls) >= len(stream.calls) else stream.calls
        events = [*stream.events, *fuller.values(), *rollout.events]
        if fuller is not rollout.calls:
            events += _denials_on_stderr(recording.stderr)
        events.append(usage_event(_usage(stream, rollout)))
        return [*events, *([Event(Kind.FINAL, stream.final)] if stream.final else [])]


@dataclass
class _Read:
    """What a file holds: events in order, tool calls by id, the final report, usages.

    ``turns`` is how many were begun in ``thread``.
    """

    events: list[Event] = field(default_factory=list)
    calls: dict[str, Event] = field(default_factory=dict)
    final: dict[str, Any] | None = None
    last_message: str = ""
    usages: list[dict[str, Any]] = field(default_factory=list)
    total: dict[str, Any] = field(default_factory=dict)
    thread: str = ""
    turns: int = 0


def _inline_table(values: dict[str, Any]) -> str:
    """TOML on one line: its strings and numbers are written as JSON writes them."""
    return "{" + ",".join(f"{key}={json.dumps(value)}" for key, value in values.items()) + "}"


def _sandbox(request: Request, space: Workspace) -> list[str]:
    if request.jail is Level.LANDLOCK:
        # Its sandbox mounts, which nothing under Landlock may: there the jail alone holds it.
        return ["-s", "danger-full-access"]
    if request.mode is Mode.READ_ONLY and (request.answer or not request.outputs):
        return ["-s", "read-only"]
    root = "sandbox_workspace_write"
    return [
        "-s", "workspace-write", "-c", f"{root}.exclude_slash_tmp=true",
        "-c", f"{root}.exclude_tmpdir_env_var=true",
        "-c", f"{root}.writable_roots={json.dumps([str(space.outputs)])}",
    ]  # fmt: skip


def _schema(request: Request, space: Workspace) -> list[str]:
    schema = request.answer.schema if request.answer else None
    asked = strict_form(schema) if schema is not None else None
    if asked is None:
        return []
    path = space.home / "answer.schema.json"
    path.write_text(json.dumps(asked))
    return ["--output-schema", str(path)]


def _read_stream(path: Path) -> _Read:
    read = _Read()
    for line in json_lines(path):
        _stream_line(read, line or {})
    return read


def _stream_line(read: _Read, line: dict[str, Any]) -> None:
    match text(line, "type"):
        case "thread.started":
            read.thread = text(line, "thread_id")
            read.events.append(Event(Kind.STARTED, {"session_id": read.thread}))
        case "turn.started":
            read.turns += 1
        case "item.started" | "item.updated" | "item.completed":
            _item(read, mapping(line, "item"))
        case "error" if text(line, "message").startswith(_STILL_TRYING):
            failure = classify(text(line, "message"))
            read.events.append(
                Event(Kind.RETRY, {"http_status": failure.http_status, "detail": failure.detail})
            )
        case "error":
            read.final = _error(text(line, "message"))
        case "turn.completed":
            read.final = {"status": "success", "text": read.last_message}
            read.usages.append(mapping(line, "usage"))
        case "turn.failed":
            read.final = _error(text(mapping(line, "error"), "message"))
        case _:
            read.events.append(Event(Kind.OTHER, {"raw": line}))


def _error(message: str) -> dict[str, Any]:
    failure = classify(message)
    return {
        "status": "error", "error": failure.status, "detail": failure.detail,
        "http_status": failure.http_status, "source": failure.source,
    }  # fmt: skip


def _item(read: _Read, item: dict[str, Any]) -> None:
    kind, identity = text(item, "type"), text(item, "id")
    if kind == "agent_message":
        read.last_message = text(item, "text")
        read.events.append(Event(Kind.MESSAGE, {"text": read.last_message}))
    elif kind in _ITEMS:
        changed = ", ".join(text(change, "path") for change in objects(item, "changes"))
        read.calls[identity or f"#{len(read.calls)}"] = Event(
            Kind.TOOL_CALL,
            {
                "id": identity,
                "name": kind,
                "capability": _ITEMS[kind],
                "target": (text(item, "command", "query", "tool") or changed)[:200],
                "outcome": "failed" if text(item, "status") in ("failed", "declined") else "ok",
            },
        )
    else:
        read.events.append(Event(Kind.OTHER, {"raw": item}))


def _read_rollouts(paths: tuple[Path, ...], thread: str, turns: int) -> _Read:
    """Every session file of the run: a subagent or a review has one of its own.

    That of a resumed ``thread`` begins with turns of earlier runs: its last ``turns`` are of this.
    """
    read = _Read()
    for path in paths:
        earlier = _lines_of_earlier_runs(path, thread, turns) if thread and turns else 0
        for line in islice(json_lines(path), earlier, None):
            _rollout_line(read, text(line, "type"), mapping(line, "payload"))
    return read


def _lines_of_earlier_runs(path: Path, thread: str, turns: int) -> int:
    last: dict[str, int] = {}
    for place, line in enumerate(json_lines(path), 1):
        payload = mapping(line, "payload")
        if text(payload, "thread_id") == thread and text(payload, "turn_id"):
            last[text(payload, "turn_id")] = place
    return max(list(last.values())[:-turns], default=0)


def _rollout_line(read: _Read, kind: str, payload: dict[str, Any]) -> None:
    inner, identity = text(payload, "type"), text(payload, "call_id", "id")
    if kind == "response_item" and inner.endswith("_call"):
        read.calls[identity or f"#{len(read.calls)}"] = Event(
            Kind.TOOL_CALL,
            {
                "id": identity,
                "name": text(payload, "name") or inner,
                "capability": "edit" if text(payload, "name") in _EDITS else "shell",
                "target": text(payload, "arguments", "input")[:200],
                "outcome": "ok",
            },
        )
    elif kind == "response_item" and inner.endswith("_call_output"):
        output = payload.get("output")
        said = output if isinstance(output, str) else json.dumps(output)
        if identity in read.calls:
            read.calls[identity].data["outcome"] = _outcome(said)
    elif kind == "token_usage_record":
        usage = mapping(payload, "usage")
        read.usages.append(usage)
        read.events.append(Event(Kind.MODEL_CALL, {"id": text(payload, "response_id")}))
    elif kind == "event_msg" and inner == "token_count":
        read.total = mapping(payload, "info", "total_token_usage") or read.total
    elif kind == "turn_context" and text(payload, "model"):
        read.events.append(Event(Kind.STARTED, {"model": text(payload, "model")}))


def _outcome(said: str) -> str:
    """How a call ended, by what the model was told of it."""
    match = _EXIT_CODE.search(said)
    failed = match is not None and match[1] != "0"
    # What ran tells its exit status first; only what never ran can have been rejected.
    if (match is None and _REJECTED.search(said)) or (failed and _SANDBOXED.search(said)):
        return "denied"
    return "failed" if failed else "ok"


def _denials_on_stderr(path: Path) -> list[Event]:
    lines = [line for line in tail(path, 65536).splitlines() if _REJECTED.search(line)]
    return [Event(Kind.DENIED, {"detail": line[:500]}) for line in lines]


def _usage(stream: _Read, rollout: _Read) -> Usage:
    """Usage from the best source there is."""
    ended = stream.final is not None
    if rollout.usages:
        return _sum(rollout.usages, "session-file", complete=ended)
    if _is_told(rollout.total):
        return _sum([rollout.total], "session-file", complete=ended)
    told = stream.usages[-1:]
    if told and _is_told(told[0]):
        return _sum(told, "final", complete=True)
    return Usage()


def _is_told(usage: dict[str, Any]) -> bool:
    """Zeros are no measurement: a review tells them for a run that did call the model."""
    return any(count(usage, name) for name in ("input_tokens", "output_tokens"))


def _sum(parts: list[dict[str, Any]], source: str, *, complete: bool) -> Usage:
    """Here the input includes what was cached and the output includes the reasoning."""

    def of(name: str) -> int | None:
        return add(*(count(part, name) for part in parts))

    return Usage(
        input=of("input_tokens"),
        cache_read=of("cached_input_tokens"),
        cache_write=of("cache_write_input_tokens"),
        output=of("output_tokens"),
        reasoning=of("reasoning_output_tokens"),
        source=source,
        complete=complete,
    )
