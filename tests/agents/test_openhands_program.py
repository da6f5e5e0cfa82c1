"""The program that runs OpenHands, with a stand-in for its SDK: a report for every end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from eop.agents.contract import Mode, Recording, Status
from eop.agents.events import usage
from eop.agents.products.openhands import PROGRAM, OpenHands
from eop.agents.products.program import Settings
from eop.agents.status import Facts, decide

if TYPE_CHECKING:
    from pathlib import Path

# Only the names that the program uses, and how they answer.
SDK = """
import os, sys, time
from types import SimpleNamespace

class Model:
    def __init__(self, **fields): self.__dict__.update(fields)
    def model_dump(self, mode): return dict(self.__dict__)

class LLM(Model): pass
class Tool(Model): pass
class Agent(Model): pass

class LLMAuthenticationError(Exception): pass

class LocalConversation:
    def __init__(self, agent, callbacks, **options):
        self.agent, self.callback, self.options = agent, callbacks[0], options
        self.state = SimpleNamespace(execution_status=SimpleNamespace(value="idle"))
        used = Model(prompt_tokens=100, completion_tokens=7, cache_read_tokens=60,
                     cache_write_tokens=0, reasoning_tokens=2)
        metrics = SimpleNamespace(accumulated_cost=0.0, token_usages=[1, 2],
                                  accumulated_token_usage=used)
        self.conversation_stats = SimpleNamespace(get_combined_metrics=lambda: metrics)

    def send_message(self, text):
        self.task = text

    def run(self):
        print("a banner on standard output")
        seen = {"kind": "ActionEvent", "tool_name": "terminal", "tool_call_id": "c1",
                "action": {"command": self.task}, "source": "agent",
                "key": os.environ.get("LLM_API_KEY"), "given": self.agent.llm.api_key}
        self.callback(Model(**seen))
        if "hang" in self.task:
            time.sleep(60)
        if "auth" in self.task:
            raise RuntimeError("run failed") from LLMAuthenticationError("invalid x-api-key")
        self.state.execution_status.value = "stuck" if "stuck" in self.task else "finished"
"""


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    root = tmp_path / "packages"
    sdk = root / "openhands/sdk"
    (sdk / "conversation/impl").mkdir(parents=True)
    (sdk / "__init__.py").write_text(SDK)
    conversation = "from openhands.sdk import LocalConversation\n"
    (sdk / "conversation/impl/local_conversation.py").write_text(conversation)
    for name, tool in (("file_editor", "FileEditorTool"), ("terminal", "TerminalTool")):
        (root / f"openhands/tools/{name}").mkdir(parents=True)
        code = f"class {tool}:\n    name = {name!r}\n"
        (root / f"openhands/tools/{name}/__init__.py").write_text(code)
    return root


def start(folder: Path, packages: Path, task: str) -> subprocess.Popen[bytes]:
    spec = {"model": "openai/m", "base_url": "http://x", "effort": None, "tools": ["terminal"],
            "workspace": ".", "state": "s", "iterations": 5}  # fmt: skip
    (folder / "task").write_text(task)
    # Not isolated as in earnest (-I), so that the stand-in is found.
    with (
        (folder / "stdout").open("wb") as out,
        (folder / "stderr").open("wb") as err,
        (folder / "task").open("rb") as source,
    ):
        return subprocess.Popen(
            [sys.executable, "-P", str(PROGRAM), json.dumps(spec)],
            stdin=source, stdout=out, stderr=err,
            env={**os.environ, "PYTHONPATH": str(packages), "LLM_API_KEY": "tok-1"},
        )  # fmt: skip


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "stdout").read_text().splitlines()]


def judge(folder: Path, rc: int) -> Status:
    recording = Recording(folder / "stdout", folder / "stderr", rc=rc)
    events = tuple(OpenHands(Settings("-", "-")).parse(recording))
    assert usage(events).input == 100
    return decide(Facts(Mode.WRITE, rc=rc, events=events, changed=True))[0]


@pytest.mark.parametrize(
    ("task", "rc", "status"),
    [
        ("do it", 0, Status.OK),
        ("auth", 1, Status.AUTH_ERROR),
        ("stuck", 3, Status.STUCK),
    ],
)
def test_every_end_is_reported(
    task: str, rc: int, status: Status, tmp_path: Path, packages: Path
) -> None:
    assert start(tmp_path, packages, task).wait(60) == rc
    event, result = lines(tmp_path)
    assert (event["type"], event["event"]["action"]["command"]) == ("event", task)
    # The tools of the agent inherit the environment: the key is not in it any more.
    assert (event["event"]["key"], event["event"]["given"]) == (None, "tok-1")
    assert (result["type"], result["terminated"], result["llm_calls"]) == ("result", False, 2)
    assert "a banner" in (tmp_path / "stderr").read_text()
    assert judge(tmp_path, rc) is status


def test_a_signal_still_gets_the_usage(tmp_path: Path, packages: Path) -> None:
    process = start(tmp_path, packages, "hang")
    deadline = time.monotonic() + 60
    while not (tmp_path / "stdout").read_bytes() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 128 + signal.SIGTERM
    assert lines(tmp_path)[-1]["terminated"] is True
    assert judge(tmp_path, 143) is Status.INVALID_OUTPUT
