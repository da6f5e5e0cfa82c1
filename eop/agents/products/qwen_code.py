"""qwen-code, headless: Claude's ``stream-json`` with manners of its own (measured with 0.15.10)."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from eop.agents.contract import Command, Status, Usage
from eop.agents.events import Event, Kind, usage_event
from eop.agents.failures import classify
from eop.agents.fields import add, count, mapping, text
from eop.agents.products import claude_stream
from eop.agents.products.program import RealProduct, endpoint_of
from eop.agents.stream import tail
from eop.agents.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eop.agents.contract import Recording, Request
    from eop.agents.products.claude_stream import Stream

NAME = "qwen-code"
_TOOLS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "read": ("read_file", "grep_search", "glob", "list_directory"),
        "edit": ("edit", "write_file"),
        "shell": ("run_shell_command",),
    }
)
_CAPABILITIES = MappingProxyType(
    {
        **{tool: capability for capability, tools in _TOOLS.items() for tool in tools},
        "web_fetch": "web", "task": "subagents", "agent": "subagents",
    }
)  # fmt: skip
_SPARE_TURNS = 5
_TURNS_SPENT = 53
_OUT_OF_TURNS = "Reached max session turns"
# The whole answer, or what an answer that broke off ends with.
_API_ERROR = re.compile(r"^\[?API Error: |\[API Error: [^\]]*\]\s*$")


class QwenCode(RealProduct):
    """``settings.binary`` is the program of the package; ``package_dirs`` hold node and it."""

    name = NAME
    vendor = "qwen"

    def command(self, request: Request) -> Command:
        """Nothing is asked for; the tools of capabilities that are not allowed do not exist."""
        endpoint = endpoint_of(request)
        space = Workspace(request.directory)
        program = self.settings.program(NAME)
        limits = []
        if request.limits.actions is not None:
            limits = ["--max-session-turns", str(request.limits.actions + _SPARE_TURNS)]
        missing = [t for name, own in _TOOLS.items() if name not in request.capabilities
                   for t in own]  # fmt: skip
        if request.outputs and request.answer is None:
            missing = [tool for tool in missing if tool not in _TOOLS["edit"]]
        argv = [
            str(program), "--auth-type", "openai", "-m", self.settings.model, "-o", "stream-json",
            "--telemetry=false", "--bare", "--approval-mode", "yolo", *limits,
            "--include-directories", f"{space.inputs},{space.outputs}",
            *(["--exclude-tools", ",".join(missing)] if missing else []),
        ]  # fmt: skip
        env = {
            "OPENAI_API_KEY": endpoint.token,
            "OPENAI_BASE_URL": endpoint.url,
            "OPENAI_MODEL": self.settings.model,
            "DISABLE_AUTOUPDATER": "1",
            "NO_UPDATE_NOTIFIER": "1",
        }
        return Command(
            tuple(argv), env, read=(program, *self.settings.package_dirs), secrets=(endpoint.token,)
        )

    def parse(self, recording: Recording) -> list[Event]:
        """Events of the stream; an API error comes as a success with an error for a text."""
        stream = claude_stream.read(recording.stdout, _CAPABILITIES)
        # Each content block is a message of its own; only the last of a call tells its usage.
        calls = [part for part in stream.messages.values() if count(part, "input_tokens")]
        usage = _usage(stream, calls)
        stream.events.append(
            usage_event(usage, model_calls=len(calls) or None, subagents=stream.subagents)
        )
        final = _final(stream, usage, recording)
        if final is not None:
            stream.events.append(Event(Kind.FINAL, final))
        return stream.events


def _final(stream: Stream, usage: Usage, recording: Recording) -> dict[str, Any] | None:
    if not stream.results:
        said = tail(recording.stderr)
        if recording.rc == _TURNS_SPENT or _OUT_OF_TURNS in said:
            detail = said.strip() or _OUT_OF_TURNS
            return {"status": "error", "error": Status.BUDGET_EXHAUSTED, "code": "max_turns",
                    "detail": detail}  # fmt: skip
        return None
    result = stream.results[-1]
    answer = text(result, "result") or text(mapping(result, "error"), "message")
    # The model can write such a text too, but not without a token: of the last message, for what
    # came before the error has its own.
    last = next(reversed(stream.messages.values()), None)
    written = usage.output if last is None else count(last, "output_tokens")
    dressed_up = _API_ERROR.search(answer) is not None and not written
    if result.get("is_error") is False and not dressed_up:
        return {"status": "success", "text": answer}
    failure = classify(answer)
    out_of_turns = text(result, "subtype") == "error_max_turns"
    return {
        "status": "error", "error": Status.BUDGET_EXHAUSTED if out_of_turns else failure.status,
        "detail": failure.detail, "http_status": failure.http_status, "source": failure.source,
    }  # fmt: skip


def _usage(stream: Stream, calls: list[dict[str, Any]]) -> Usage:
    """Of the result, else of the messages; here the input includes what was cached."""
    if stream.results:
        return _of([mapping(stream.results[-1], "usage")], "final", complete=True)
    return _of(calls, "stream-lower-bound", complete=False) if calls else Usage()


def _of(parts: list[dict[str, Any]], source: str, *, complete: bool) -> Usage:
    return Usage(
        input=add(*(count(part, "input_tokens") for part in parts)),
        cache_read=add(*(count(part, "cache_read_input_tokens") for part in parts)),
        output=add(*(count(part, "output_tokens") for part in parts)),
        source=source,
        complete=complete,
    )
