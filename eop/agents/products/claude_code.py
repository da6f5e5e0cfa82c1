"""Claude Code, headless: ``claude -p`` with ``stream-json`` (measured with 2.1.332)."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from eop.agents.contract import Command, Status, Usage
from eop.agents.events import Event, Kind, usage_event
from eop.agents.failures import Failure, classify
from eop.agents.fields import add, count, mapping, money, text
from eop.agents.forms import form
from eop.agents.products import claude_stream
from eop.agents.products.program import RealProduct, endpoint_of
from eop.agents.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eop.agents.contract import Recording, Request
    from eop.agents.products.claude_stream import Stream

NAME = "claude-code"
_TOOLS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"read": ("Read", "Grep", "Glob"), "edit": ("Edit", "Write"), "shell": ("Bash",)}
)
_CAPABILITIES = MappingProxyType(
    {
        **{tool: capability for capability, tools in _TOOLS.items() for tool in tools},
        "NotebookEdit": "edit",
        **dict.fromkeys(("WebFetch", "WebSearch"), "web"),
        **dict.fromkeys(("Agent", "Task"), "subagents"),
    }
)
# The turn limit is a net under the runtime's own count: a turn has one action at least.
_SPARE_TURNS = 5
_SINCE = "model_usage_since_last_result"
_SUBTYPES = MappingProxyType(
    {
        "error_max_turns": Status.BUDGET_EXHAUSTED,
        "error_max_budget_usd": Status.BUDGET_EXHAUSTED,
        "error_max_structured_output_retries": Status.INVALID_OUTPUT,
    }
)


class ClaudeCode(RealProduct):
    """Runs the native program; every kind of project settings, hook and server is off."""

    name = NAME
    vendor = "anthropic"

    def command(self, request: Request) -> Command:
        """Tools that are not named do not exist for the model; paths are held to the workspace."""
        space = Workspace(request.directory)
        endpoint = endpoint_of(request)
        tools, allowed = _tools(request, space)
        argv = [
            str(self.settings.program(NAME)), "-p", "--output-format", "stream-json", "--verbose",
            "--model", self.settings.model, "--setting-sources", "", "--strict-mcp-config",
            "--disable-slash-commands", "--no-session-persistence",
            "--permission-prompts", "none", "--permission-mode", "dontAsk",
            "--tools", ",".join(tools), "--add-dir", str(space.inputs), str(space.outputs),
            *_limits(request),
        ]  # fmt: skip
        if self.settings.effort:
            argv += ["--effort", self.settings.effort]
        if request.answer and request.answer.schema:
            argv += ["--json-schema", json.dumps(form(request.answer.schema))]
        # Last, because it takes every argument up to the next option.
        argv += ["--allowedTools", *allowed]
        env = {
            "CLAUDE_CONFIG_DIR": str(space.home / ".claude"),
            "ANTHROPIC_BASE_URL": endpoint.url,
            "ANTHROPIC_API_KEY": endpoint.token,
            "CLAUDE_CODE_MAX_RETRIES": "3",
            **dict.fromkeys(
                (
                    "DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING",
                    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
                    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS",
                ),
                "1",
            ),
        }  # fmt: skip
        program = self.settings.program(NAME)
        return Command(
            tuple(argv), env, read=(program, *self.settings.package_dirs), secrets=(endpoint.token,)
        )

    def parse(self, recording: Recording) -> list[Event]:
        """Events of the stream; usage from the result, else a lower bound from its messages."""
        stream = claude_stream.read(recording.stdout, _CAPABILITIES)
        result = _last_word(stream)
        stream.events.append(usage_event(_usage(stream), subagents=stream.subagents))
        if result is not None:
            stream.add(Kind.FINAL, **_final(stream, result))
        return stream.events


def _tools(request: Request, space: Workspace) -> tuple[list[str], list[str]]:
    """The tools that exist, and the rules by which they need no question."""
    tools = [tool for name, own in _TOOLS.items() if name in request.capabilities for tool in own]
    allowed = [tool for tool in tools if tool not in ("Read", "Edit", "Write")]
    if "read" in request.capabilities:
        # A rule for a path from the root of the file system starts with two slashes.
        allowed += ["Read(./**)", f"Read(/{space.inputs}/**)"]
    if "edit" in request.capabilities:
        allowed.append("Edit(./**)")
    if request.outputs and request.answer is None:
        tools += [tool for tool in ("Edit", "Write") if tool not in tools]
        allowed.append(f"Edit(/{space.outputs}/**)")
    return tools, allowed


def _limits(request: Request) -> list[str]:
    options = []
    if request.limits.actions is not None:
        options += ["--max-turns", str(request.limits.actions + _SPARE_TURNS)]
    return options


def _last_word(stream: Stream) -> dict[str, Any] | None:
    """The result that counts: being interrupted after a success does not undo it."""
    if not stream.results:
        return None
    last = stream.results[-1]
    if text(last, "subtype") == "error_during_execution":
        earlier = [one for one in stream.results if one.get("is_error") is False]
        return earlier[-1] if earlier else last
    return last


def _final(stream: Stream, result: dict[str, Any]) -> dict[str, Any]:
    said = {"text": text(result, "result"), "structured": result.get("structured_output")}
    subtype = text(result, "subtype")
    if result.get("is_error") is False and subtype == "success":
        return {"status": "success", **said}
    failure = _failure(stream, result)
    return {
        **said,
        "status": "error",
        "error": failure.status,
        "code": text(result, "terminal_reason", "subtype") or "product",
        "detail": failure.detail,
        "http_status": failure.http_status,
        "source": failure.source,
    }


def _failure(stream: Stream, result: dict[str, Any]) -> Failure:
    errors = result.get("errors")
    listed = [str(one) for one in errors] if isinstance(errors, list) else []
    detail = text(result, "result") or "; ".join(listed)
    subtype = text(result, "subtype")
    if subtype in _SUBTYPES:
        return Failure(_SUBTYPES[subtype], detail or subtype)
    if text(result, "stop_reason") == "refusal":
        return Failure(Status.REFUSED, detail)
    if text(result, "terminal_reason") == "prompt_too_long":
        return Failure(Status.CONTEXT_OVERFLOW, detail, count(result, "api_error_status"))
    found = classify(detail, count(result, "api_error_status"))
    if found.status is None:
        hint = " ".join((text(result, "api_error"), text(result, "api_error_type"),
                         stream.complaint))  # fmt: skip
        found = Failure(classify(hint).status, detail)
    return found


def _usage(stream: Stream) -> Usage:
    if not stream.results:
        return _lower_bound(stream)
    models = _by_model(stream.results)
    if not models:
        return _reported(mapping(stream.results[-1], "usage"))
    costs = [money(model, "costUSD") for model in models]
    listed = all(text(model, "costBasis") == "list" for model in models)
    read = add(*(count(model, "cacheReadInputTokens") for model in models))
    write = add(*(count(model, "cacheCreationInputTokens") for model in models))
    known = None not in costs
    return Usage(
        input=add(*(count(model, "inputTokens") for model in models), read, write),
        cache_read=read,
        cache_write=write,
        output=add(*(count(model, "outputTokens") for model in models)),
        reasoning=add(*(count(model, "thinkingTokens") for model in models)),
        usd=sum(cost or 0.0 for cost in costs) if known else None,
        usd_basis=("product-list" if listed else "product-unknown") if known else "none",
        source="final",
        complete=True,
    )


def _by_model(results: list[dict[str, Any]]) -> list[Any]:
    """What each model did for this process, subagents included.

    The totals are those of the session, which began before a process that resumed it; newer
    versions also tell with each result what came since the last one.
    """
    if all(_SINCE in result for result in results):
        return [model for result in results for model in mapping(result, _SINCE).values()]
    return list(mapping(results[-1], "modelUsage").values())


def _reported(usage: dict[str, Any]) -> Usage:
    """The usage of a result that names no model: all zero when no call came to anything."""
    uncached, read, write = (
        count(usage, name)
        for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    )
    output = count(usage, "output_tokens")
    reasoning = count(mapping(usage, "output_tokens_details"), "thinking_tokens")
    return Usage(
        add(uncached, read, write), read, write, output, reasoning, source="final", complete=True
    )


def _lower_bound(stream: Stream) -> Usage:
    """What the messages began with; the length of an answer is only told at its end."""
    parts = list(stream.messages.values())
    if not parts:
        return Usage()
    read = sum(count(part, "cache_read_input_tokens") or 0 for part in parts)
    write = sum(count(part, "cache_creation_input_tokens") or 0 for part in parts)
    return Usage(
        input=sum(count(part, "input_tokens") or 0 for part in parts) + read + write,
        cache_read=read,
        cache_write=write,
        output=sum(count(part, "told_output", "output_tokens") or 0 for part in parts),
        source="stream-lower-bound",
    )
