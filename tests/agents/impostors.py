"""Programs that look like Claude Code or Codex from outside and do whatever a test wants.

``begin`` calls the model once, by the gateway; ``ask`` calls it again.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from eop.agents import patch
from eop.agents.products import REAL
from eop.agents.products.program import Settings

if TYPE_CHECKING:
    from eop.agents.contract import Product

_BOTH = """
import json, os, re, signal, subprocess, sys, time
import urllib.error, urllib.request
from pathlib import Path
if "--version" in sys.argv:
    print("9.9.9 (impostor)")
    raise SystemExit
prompt = sys.stdin.read()
workspace, outputs = Path.cwd(), Path("../outputs").absolute()
home, inputs = Path(os.environ["HOME"]), Path("../inputs").absolute()
def line(**data):
    print(json.dumps(data), flush=True)
def ask():
    body = json.dumps({"model": "m", "stream": True, "messages": [], "input": []}).encode()
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=20) as got:
            got.read()
    except urllib.error.HTTPError as error:
        error.close()
def edit(path="models/a.py", content="a = 2\\n"):
    (workspace / path).write_text(content)
def ignore_signals():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
def tried(do):
    try:
        do()
    except OSError:
        pass
"""

CLAUDE = (
    _BOTH
    + """
token, url = os.environ["ANTHROPIC_API_KEY"], os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
def begin():
    ask()
    line(type="system", subtype="init", session_id="s-1", model="m", claude_code_version="9.9.9")
def say(text):
    line(type="assistant", message={"id": f"msg-{text[:9]}", "model": "m", "content": [
        {"type": "text", "text": text}], "usage": {"input_tokens": 10, "output_tokens": 1}})
def act(identity, command):
    line(type="assistant", message={"id": f"msg-{identity}", "model": "m", "content": [
        {"type": "tool_use", "id": identity, "name": "Bash", "input": {"command": command}}],
        "usage": {"input_tokens": 10, "output_tokens": 1}})
    line(type="user", message={"content": [{"type": "tool_result", "tool_use_id": identity}]})
def finish(text="done"):
    line(type="result", subtype="success", is_error=False, result=text, modelUsage={"m": {
        "inputTokens": 120, "outputTokens": 30, "cacheReadInputTokens": 0,
        "cacheCreationInputTokens": 0, "costUSD": 0.5, "costBasis": "list"}})
def unauthorised():
    line(type="result", subtype="success", is_error=True, api_error_status=401, usage={},
        result="Failed to authenticate. API Error: 401 invalid x-api-key")
def interrupted():
    line(type="result", subtype="error_during_execution", is_error=True, result="interrupted")
def lie(**numbers):
    line(type="result", subtype="success", is_error=False, result="done", modelUsage={"m": {
        "inputTokens": numbers["read"], "outputTokens": numbers["wrote"],
        "cacheReadInputTokens": 0, "cacheCreationInputTokens": 0, "costUSD": -1}})
def half_a_line():
    sys.stdout.write('{"type": "result", "subtype": "success", "is_error": fal')
    sys.stdout.flush()
"""
)

CODEX = (
    _BOTH
    + """
token, url = os.environ["RT_KEY"], re.search('base_url="(.*?)"', str(sys.argv))[1] + "/responses"
rollout = Path(os.environ["CODEX_HOME"], "sessions/2026/12/01/rollout-1.jsonl")
def kept(**data):
    rollout.parent.mkdir(parents=True, exist_ok=True)
    with rollout.open("a") as stream:
        stream.write(json.dumps(data) + "\\n")
def begin():
    ask()
    line(type="thread.started", thread_id="s-1")
    kept(type="turn_context", payload={"model": "m"})
def say(text):
    line(type="item.completed", item={"id": text, "type": "agent_message", "text": text})
def act(identity, command):
    line(type="item.completed", item={"id": identity, "type": "command_execution",
        "command": command, "exit_code": 0, "status": "completed"})
    kept(type="response_item", payload={"type": "function_call", "call_id": identity,
        "name": "exec_command", "arguments": command})
def finish(text="done"):
    say(text)
    kept(type="token_usage_record", payload={"response_id": "r", "usage": {
        "input_tokens": 120, "output_tokens": 30}})
    line(type="turn.completed", usage={"input_tokens": 120, "output_tokens": 30})
def unauthorised():
    said = "unexpected status 401 Unauthorized: invalid key"
    line(type="error", message=said)
    line(type="turn.failed", error={"message": said})
def interrupted():
    kept(type="event_msg", payload={"type": "interrupted"})
def lie(**numbers):
    usage = {"input_tokens": numbers["read"], "output_tokens": numbers["wrote"]}
    line(type="turn.completed", usage=usage)
def half_a_line():
    sys.stdout.write('{"type": "turn.completed", "usage": {"input_tok')
    sys.stdout.flush()
"""
)

PRODUCTS = {"claude-code": CLAUDE, "codex": CODEX}


def impostor(name: str, folder: Path, body: str, **settings: str) -> Product:
    """The real adapter of a product with a program of ours in the place of its own.

    ``body`` may ask for its ``prompt``.
    """
    program = folder / f"impostor-{name}"
    program.write_text(f"#!{sys.executable} -I\n{PRODUCTS[name]}\n{body}\n")
    program.chmod(0o755)
    return REAL[name](Settings(str(program), "m", **settings))


def survivors(home: Path) -> list[str]:
    """Command lines of living processes that were started for an attempt: they have its HOME."""
    mark = f"HOME={home}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                found.append((entry / "cmdline").read_bytes().decode(errors="replace"))
        except OSError:
            continue
    return found


def everything_kept(attempt: Path, store: Path) -> list[tuple[str, bytes]]:
    """All bytes below an attempt's folder and in the store, file names and links among them."""
    found = []
    for folder, subfolders, files in os.walk(attempt):
        for name in [*subfolders, *files]:
            path = Path(folder, name)
            content = os.fsencode(name)
            if path.is_symlink():
                content += os.fsencode(path.readlink())
            elif path.is_file():
                content += path.read_bytes()
            found.append((str(path), content))
    objects = patch.git(store, "cat-file", "--batch", "--batch-all-objects", "--unordered")
    return [*found, ("the store", objects)]
