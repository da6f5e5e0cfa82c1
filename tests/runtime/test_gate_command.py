"""`eop gate` as people use it: at a terminal, beside a run, and never without a person."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from research_run import Run

from eop.cli import cli, main
from eop.core.errors import EopError, ExitCode
from eop.core.files import write_json
from eop.core.locks import acquire
from eop.project.config import Config
from eop.runtime.signatures import Signers

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result


def started(root: Path, signers: Signers | None = None) -> Run:
    """A run at its first gate, as `eop` finds it on disk."""
    run = Run(root, signers=signers)
    config = Config("research.eop.md", "r1", "toy", "d", "e", 1, 0.1, "auto", False, "p", False)
    write_json(run.folder / "config.json", config.to_json())
    run.do("it01_investigate")
    run.advance()
    return run


def arguments_of(run: Run, *arguments: str) -> list[str]:
    return ["--project", str(run.root), "gate", *arguments, "--run", "r1"]


def piped(run: Run, *arguments: str, said: str = "") -> Result:
    return CliRunner().invoke(cli, arguments_of(run, *arguments), input=said)


def at_terminal(run: Run, *arguments: str, said: str) -> tuple[int, str]:
    """Exit status and screen of the command, in a process with a terminal and a person's typing."""
    child, screen_end = pty.fork()
    if child == 0:
        # What pytest has put in the place of the streams is not the terminal.
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
        sys.argv = ["eop", *arguments_of(run, *arguments)]
        status = 99
        try:
            main()
        except SystemExit as end:
            status = int(end.code or 0)
        finally:
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            os._exit(status)
    os.write(screen_end, said.encode())
    screen = b""
    with suppress(OSError):  # how a terminal says that the other side is closed
        while part := os.read(screen_end, 65536):
            screen += part
    os.close(screen_end)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), screen.decode()


def listed(run: Run) -> list[dict[str, Any]]:
    done = piped(run, "list", "--json")
    assert done.exit_code == 0, done.output
    found: list[dict[str, Any]] = json.loads(done.stdout)["gates"]
    return found


def test_a_person_approves_beside_a_run_that_holds_the_lock(tmp_path: Path) -> None:
    run = started(tmp_path)
    with acquire(tmp_path / "runs" / ".lock"):
        status, screen = at_terminal(run, "approve", "confirm", said="y\nreads well\n")
        assert status == 0, screen
        (facts,) = listed(run)
    (made,) = run.gates.glob("*.approved")
    assert f"approve it01_confirm of run r1, digest {facts['digest']}?" in screen
    assert piped(run, "list").stdout.startswith("run r1\n")
    assert "## How to answer" in screen
    assert "investigate.md" in screen
    assert made.read_text() == "reads well"
    assert (facts["status"], facts["reason"]) == ("approved", "reads well")
    shown = piped(run, "show", "confirm")
    assert "## How to answer" in shown.stdout
    assert "approved by" in shown.stdout


def test_who_says_no_at_the_question_has_answered_nothing(tmp_path: Path) -> None:
    run = started(tmp_path)
    status, screen = at_terminal(run, "reject", "confirm", said="n\n")
    assert status == 1, screen
    assert not [p for p in run.gates.iterdir() if not p.name.endswith(".request.md")]


@pytest.mark.parametrize("word", ["approve", "reject"])
def test_without_a_terminal_nothing_is_made(tmp_path: Path, word: str) -> None:
    run = started(tmp_path)
    done = piped(run, word, "confirm", said="y\nfine\n")
    assert isinstance(done.exception, EopError)
    assert done.exception.exit_code is ExitCode.USAGE
    assert "touch gates/r1/it01-confirm." in (done.exception.hint or "")
    assert not [p for p in run.gates.iterdir() if not p.name.endswith(".request.md")]


def test_a_gate_that_was_answered_is_not_answered_again(tmp_path: Path) -> None:
    run = started(tmp_path)
    run.touch("approved")
    status, screen = at_terminal(run, "reject", "confirm", said="y\nlate\n")
    assert status == 7
    assert "EOP740" in screen
    assert not list(run.gates.glob("*.rejected"))


def test_show_tells_programs_what_is_asked(tmp_path: Path) -> None:
    run = started(tmp_path)
    (run.gates / "it01-confirm.approved").touch()
    facts = json.loads(piped(run, "show", "confirm", "--json").stdout)
    assert facts["status"] == "requested"
    assert facts["approve"].endswith(f".{facts['digest']}.approved")
    assert facts["shown"][0]["name"] == "investigate_text"
    assert facts["problems"][0].startswith("it01-confirm.approved: decides nothing")
    assert "no gate 'nothing' in run r1" in str(piped(run, "show", "nothing").exception)


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs OpenSSH")
def test_one_command_signs_and_answers(tmp_path: Path) -> None:
    for name in ("alice", "mallory"):
        key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)]
        subprocess.run(key, check=True)
    signers = Signers(f"alice {(tmp_path / 'alice.pub').read_text()}".encode())
    run = started(tmp_path / "project", signers)
    status, screen = at_terminal(run, "approve", "confirm", said="y\n\n")
    assert status == 2
    assert "EOP747" in screen
    stranger = ("approve", "confirm", "--sign", str(tmp_path / "mallory"))
    status, screen = at_terminal(run, *stranger, said="y\nfine\n")
    assert status == 2
    assert "EOP748" in screen
    assert not [p for p in run.gates.iterdir() if not p.name.endswith(".request.md")]
    mine = ("approve", "confirm", "--sign", str(tmp_path / "alice"))
    status, screen = at_terminal(run, *mine, said="y\nfine\n")
    assert status == 0, screen
    known = run.advance().state.gates["it01_confirm"]
    assert (known.status, known.by, known.reason) == ("approved", "alice", "fine")
