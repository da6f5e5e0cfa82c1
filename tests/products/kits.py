"""The real products: where their programs are and how a model speaks to their tools."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from scripted_model import Call, Say, fit

from eop.agents.products import REAL
from eop.agents.products.program import Settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from scripted_model import Asked

    from eop.agents.contract import Product

ROOT = Path(__file__).parents[2]
MODEL = "scripted-model"
FOLDER = Path(os.environ.get("RANKEVOLVE_PRODUCTS", ROOT / ".products")).resolve()
_CODEX = "node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl"


@dataclass(frozen=True)
class Kit:
    """A product as installed.

    ``put`` is the call of its tools that gives a file its text, ``run`` that of a command line.
    ``api`` is what its base URL has after the server's address. ``answers`` says by which tool it
    answers in a form; without one its last text is the answer.
    """

    name: str
    program: str
    version: str
    api: str
    put: Callable[[Path, str], Call]
    run: Callable[[str], Call]
    answers: str | None = None
    needs: str | None = None

    @property
    def binary(self) -> Path:
        """The program's file."""
        return FOLDER / self.program

    @property
    def package_dirs(self) -> tuple[Path, ...]:
        """What it reads besides its program."""
        home = self.binary.parent.parent / "pyvenv.cfg"
        if home.is_file():
            return (Path(re.search(r"^home = (.*)$", home.read_text(), re.MULTILINE)[1]).parent,)
        return (FOLDER / self.needs,) if self.needs else ()

    def product(self) -> Product:
        """The product, pinned; its endpoint comes with each request. Skips what is not there."""
        if not self.binary.exists():
            pytest.skip(f"{self.name} is not installed ({self.binary}): make products says why")
        return REAL[self.name](
            Settings(str(self.binary), MODEL, self.version, package_dirs=self.package_dirs)
        )

    def answer(self, value: Any) -> Callable[[Asked], Say]:
        """The model's answer in the form that it is asked for; as its text where that is how."""

        def say(asked: Asked) -> Say:
            formed = value if asked.schema is None else fit(value, asked.schema)
            if self.answers is None:
                return Say(json.dumps(formed))
            return Say(calls=(Call(self.answers, formed),))

        return say

    def __str__(self) -> str:
        return self.name


def _heredoc(path: Path, text: str) -> str:
    return f"cat > '{path}' <<'END_OF_FILE'\n{text}END_OF_FILE"


def _exec(line: str) -> Call:
    return Call("exec_command", {"cmd": line})


def _terminal(line: str) -> Call:
    return Call("terminal", {"command": line, "security_risk": "LOW", "summary": "run it"})


def _shell(line: str) -> Call:
    return Call("run_shell_command", {"command": line, "is_background": False})


CLAUDE = Kit(
    "claude-code",
    "node_modules/@anthropic-ai/claude-code-linux-x64/claude",
    "2.1.332",
    "",
    lambda path, text: Call("Write", {"file_path": str(path), "content": text}),
    lambda line: Call("Bash", {"command": line, "description": "Run it"}),
    answers="StructuredOutput",
)
CODEX = Kit(
    "codex",
    f"{_CODEX}/bin/codex",
    "0.171.0",
    "/v1",
    lambda path, text: _exec(_heredoc(path, text)),
    _exec,
    needs=_CODEX,
)
OPENCODE = Kit(
    "opencode",
    "node_modules/opencode-linux-x64/bin/opencode",
    "1.18.33",
    "/v1",
    lambda path, text: Call("write", {"filePath": str(path), "content": text}),
    lambda line: Call("bash", {"command": line, "description": "Run it"}),
)
QWEN = Kit(
    "qwen-code",
    "node_modules/@qwen-code/qwen-code/cli.js",
    "0.15.10",
    "/v1",
    lambda path, text: _shell(_heredoc(path, text)),
    _shell,
    needs="node_modules/@qwen-code/qwen-code",
)
OPENHANDS = Kit(
    "openhands",
    "openhands/bin/python",
    "1.58.2",
    "/v1",
    lambda path, text: _terminal(_heredoc(path, text)),
    lambda line: _terminal(line),
)
KITS = (CLAUDE, CODEX, OPENCODE, QWEN, OPENHANDS)
