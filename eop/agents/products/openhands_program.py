"""The program that runs one OpenHands conversation: ``python -I openhands_program.py SPEC``.

SPEC is JSON: model, base_url, effort, tools, workspace, state, iterations. The task comes on
standard input, the model's key in ``LLM_API_KEY``, which the agent's tools do not inherit. On
standard output there is nothing but JSON lines: ``event`` for each of the conversation's, then one
``result`` with status, error and usage, also after SIGTERM or SIGINT. Exit 0 when it finished,
1 for an error, 3 when it ended otherwise. It runs in an environment in which the SDK is installed
and imports nothing of the harness.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from typing import Any, TextIO

# A model call in flight cannot be interrupted: the report is made and the process goes.
_PATIENCE_S = 2.0


class Report:
    """Writes JSON lines to what was standard output; the result only once."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.lock = threading.Lock()
        self.started = time.monotonic()
        self.done = False

    def event(self, event: Any) -> None:
        """A callback of the conversation."""
        data = event.model_dump(mode="json")
        self._write({"type": "event", "kind": data.get("kind"), "event": data})

    def result(self, conversation: Any, error: BaseException | None, *, terminated: bool) -> str:
        """The final line; returns the status that it tells."""
        status = str(getattr(conversation.state.execution_status, "value", "error"))
        status = "error" if error is not None else status
        metrics = conversation.conversation_stats.get_combined_metrics()
        usage = metrics.accumulated_token_usage
        with self.lock:
            if self.done:
                return status
            self.done = True
        self._write(
            {
                "type": "result",
                "status": status,
                "error": error and {"class": type(error).__name__, "message": str(error)},
                "terminated": terminated,
                "cost_usd": metrics.accumulated_cost,
                "llm_calls": len(metrics.token_usages),
                "usage": usage.model_dump(mode="json") if usage else {},
                "seconds": round(time.monotonic() - self.started, 3),
            }
        )
        return status

    def _write(self, line: dict[str, Any]) -> None:
        with self.lock:
            self.stream.write(json.dumps(line) + "\n")
            self.stream.flush()


def clean_output() -> TextIO:
    """Standard output for us alone: whatever else prints does so on standard error."""
    own = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return own


def converse(spec: dict[str, Any], key: str, report: Report) -> Any:
    """A conversation, ready to be told its task."""
    from openhands.sdk import LLM, Agent, Tool
    from openhands.sdk.conversation.impl.local_conversation import LocalConversation
    from openhands.tools.file_editor import FileEditorTool
    from openhands.tools.terminal import TerminalTool

    known = {"file_editor": FileEditorTool, "terminal": TerminalTool}
    effort = {"reasoning_effort": spec["effort"]} if spec["effort"] else {}
    llm = LLM(
        model=spec["model"], base_url=spec["base_url"], api_key=key, usage_id="agent",
        num_retries=2, retry_min_wait=1, retry_max_wait=8, **effort,
    )  # fmt: skip
    # A plain terminal: a server of tmux outlives it, and wants a short path to its socket.
    settings = {"terminal": {"terminal_type": "subprocess"}}
    tools = [Tool(name=known[name].name, params=settings.get(name, {})) for name in spec["tools"]]
    agent = Agent(llm=llm, tools=tools)
    return LocalConversation(
        agent=agent,
        workspace=spec["workspace"],
        persistence_dir=spec["state"],
        max_iteration_per_run=spec["iterations"],
        callbacks=[report.event],
        visualizer=None,
    )


def leave_on_signal(conversation: Any, report: Report) -> None:
    """Report what was spent and go, whatever the conversation is doing."""

    def leave(number: int, frame: object) -> None:
        del frame

        def go() -> None:
            # In a thread of its own: the conversation may hold its lock while a tool blocks.
            report.result(conversation, None, terminated=True)
            os._exit(128 + number)

        threading.Thread(target=go, daemon=True).start()
        threading.Timer(_PATIENCE_S, lambda: os._exit(128 + number)).start()

    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGINT, leave)


def main() -> int:
    """Run the conversation of the spec to its end."""
    report = Report(clean_output())
    spec = json.loads(sys.argv[1])
    conversation = converse(spec, os.environ.pop("LLM_API_KEY", ""), report)
    leave_on_signal(conversation, report)
    error: BaseException | None = None
    try:
        conversation.send_message(sys.stdin.read())
        conversation.run()
    except Exception as caught:
        error = caught.__cause__ or caught
    status = report.result(conversation, error, terminated=False)
    if error is not None:
        return 1
    return 0 if status == "finished" else 3


if __name__ == "__main__":
    sys.exit(main())
