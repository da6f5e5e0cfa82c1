"""What people see on a terminal of 80 columns: pictures that fit, and colours only where wanted."""

from __future__ import annotations

import fcntl
import json
import os
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
from typing import TYPE_CHECKING

import pytest
from begun import begun_project

from eop.cli import watch
from eop.core.files import write_json
from eop.driver.loop import position_of
from eop.patterns import attempts
from eop.project.project import Project
from eop.report import Beat
from eop.runtime.lifecycle import enter
from eop.runtime.node import Instance
from eop.runtime.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COLUMNS, ROWS = 80, 24
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
COLOUR = re.compile(r"\x1b\[(?:\d+;)*(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])(?:;\d+)*m")
SECONDS = 60


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose first agent is at work."""
    root = begun_project(tmp_path_factory.mktemp("terminal"))
    project = Project.of_run(root, "minimal-synthetic")
    position_of(project)
    enter(Trace(project.trace_dir, project.plan), project.plan, Instance.parse("it01_look"))
    return root


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, root: Path, *arguments: str, **environment: str) -> None:
        self.screen, inside = os.openpty()
        fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        kept = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES", "NO_COLOR")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "eop.cli", "--project", str(root), *arguments],
            stdin=inside,
            stdout=inside,
            stderr=inside,
            env={**kept, "TERM": "xterm-256color", **environment},
            start_new_session=True,
        )
        os.close(inside)
        self.text = ""

    def read(self, until: str | None = None, times: int = 1) -> str:
        """All that was shown until ``until`` was, so often, or until the command has ended."""
        while until is None or self.text.count(until) < times:
            ready, _, _ = select.select([self.screen], [], [], SECONDS)
            assert ready, f"nothing more came: {self.text}"
            try:
                chunk = os.read(self.screen, 1 << 16)
            except OSError:
                break
            if not chunk:
                break
            self.text += chunk.decode()
        return self.text

    def end(self) -> int:
        """Read on to its end; its exit status."""
        self.read()
        os.close(self.screen)
        return self.process.wait(SECONDS)


def lines(text: str) -> list[str]:
    return [line.rstrip("\r") for line in CONTROL.sub("", text).split("\n")]


def test_the_picture_fits_is_drawn_again_and_gives_the_terminal_back(root: Path) -> None:
    terminal = Terminal(root, "status", "--watch")
    text = terminal.read(until="no action seen yet", times=3)
    shown = [" ".join(line.split()) for line in lines(text)]
    assert "agent actions: 0 of 40 spent, 10 reserved" in shown
    assert max(map(len, lines(text.replace("\r", "\n")))) <= COLUMNS
    assert "\x1b[1A\x1b[2K" in text, "it is drawn in its place"
    frame = text.split("at work")[1]
    assert frame.count("\n") < ROWS
    os.kill(terminal.process.pid, signal.SIGINT)
    assert terminal.end() == 0
    assert terminal.text.rstrip().rfind("\x1b[?25h") > terminal.text.rfind("\x1b[?25l")


@pytest.fixture
def agent(root: Path) -> Iterator[Path]:
    """The agent's attempt, as its runtime begins it; what it does next is a line of its stream."""
    at = root / "runs/minimal-synthetic/it01/look/work/01-reader/a01"
    at.mkdir(parents=True)
    attempts.begin(at, "same", "scripted")
    turn = {"role": "reader", "round": 1}
    write_json(at / "request.json", {"turn": turn, "limits": {"actions": 10}})
    tells(at, {"type": "started"})
    yield at
    shutil.rmtree(at.parent)


def tells(at: Path, line: dict[str, str]) -> None:
    with (at / "stdout").open("a") as stream:
        stream.write(json.dumps(line) + "\n")


READS = {"type": "tool_call", "id": "1", "name": "Read", "target": "hstu/models/hstu.py"}


def test_the_picture_follows_what_an_agent_does(root: Path, agent: Path) -> None:
    terminal = Terminal(root, "status", "--watch")
    terminal.read(until="reader (scripted) for ")
    assert ": has begun" in terminal.text
    tells(agent, READS)
    terminal.read(until="1 of 10 actions")
    shown = " ".join(CONTROL.sub("", terminal.text).split())
    assert ": Read hstu/models/hstu.py" in shown
    os.kill(terminal.process.pid, signal.SIGINT)
    assert terminal.end() == 0
    assert max(map(len, lines(terminal.text.replace("\r", "\n")))) <= COLUMNS


def test_status_says_once_what_the_picture_does(root: Path, agent: Path) -> None:
    tells(agent, READS)
    terminal = Terminal(root, "status")
    assert terminal.end() == 0
    shown = " ".join(CONTROL.sub("", terminal.text).split())
    assert "minimal-synthetic at work (protocol minimal 0.1.0" in shown
    assert "reader (scripted) for " in shown
    assert "look at work" in shown
    asked = Terminal(root, "status", "--json")
    assert asked.end() == 0
    (node,) = json.loads(asked.text)["at_work"]
    assert node["agents"][0]["last"] == "Read hstu/models/hstu.py"


def test_beside_snakemake_s_lines_stands_what_is_at_work(
    root: Path, agent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "_LOOK_S", 0.0)
    monkeypatch.setattr(watch, "Beat", lambda: Beat(every_s=0.0))
    news = watch.News(Project.of_run(root, "minimal-synthetic"))
    (line,) = news.lines()
    assert "it01_look" in line and "reader (scripted) for " in line
    assert list(news.lines()) == [], "nothing has changed"
    tells(agent, READS)
    (line,) = news.lines()
    assert line.endswith(": Read hstu/models/hstu.py")


@pytest.mark.parametrize("arguments", [("status",), ("status", "--watch")])
@pytest.mark.parametrize(("environment", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_no_color_is_respected(
    root: Path, arguments: tuple[str, ...], environment: dict[str, str], coloured: bool
) -> None:
    terminal = Terminal(root, *arguments, **environment)
    terminal.read(until="advise")
    if "--watch" in arguments:
        os.kill(terminal.process.pid, signal.SIGINT)
    assert terminal.end() == 0
    assert bool(COLOUR.search(terminal.text)) is coloured
