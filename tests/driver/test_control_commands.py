"""`eop pause`, `resume`, `cancel`: recorded with who and why, beside a run that holds its lock."""

from __future__ import annotations

import os
import pwd
import socket
from typing import TYPE_CHECKING

import pytest
from begun import begun_project
from click.testing import CliRunner

from eop.cli import cli
from eop.core.errors import EopError, ExitCode
from eop.driver.announce import closing_lines
from eop.driver.loop import position_of
from eop.driver.workflow import lock_project
from eop.project.project import Project

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

RUN = "minimal-synthetic"
ME = f"{pwd.getpwuid(os.getuid()).pw_name}@{socket.gethostname()}"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return begun_project(tmp_path)


def call(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["--project", str(root), *arguments])


def test_a_run_is_paused_and_goes_on_while_another_shell_drives_it(root: Path) -> None:
    project = Project.of_run(root, RUN)
    with lock_project(root):
        done = call(root, "pause", "--reason", "a look\x1b[2J")
        assert (done.exit_code, done.output) == (
            0,
            f"{RUN}: paused; nothing is at work; to go on: eop resume --run {RUN}\n",
        )
        position = position_of(project)
        assert str(position.state.halt) == f"the run is paused by {ME}: a look\ufffd[2J"
        assert position.frontier.instances == ()
        said = closing_lines(project, position)[-1]
        assert said.startswith("RUN PAUSED\n")
        assert f"eop resume --run {RUN}," in said
        assert "paused by" in call(root, "status").output
        assert call(root, "resume").exit_code == 0
        assert position_of(project).frontier.instances != ()
        assert "paused" not in call(root, "status").output


def test_a_cancelled_run_is_over(root: Path) -> None:
    assert call(root, "cancel", "--reason", "no use").exit_code == 0
    position = position_of(Project.of_run(root, RUN))
    assert position.ended == "cancelled"
    assert position.frontier.instances == ()
    assert f"the run is cancelled by {ME}: no use" in call(root, "status").output.replace("\n", " ")


def test_what_says_nothing_new_is_refused(root: Path) -> None:
    done = call(root, "resume")
    assert isinstance(done.exception, EopError)
    assert done.exception.exit_code is ExitCode.STATE
    assert "the run is not paused" in str(done.exception)
