"""A folder that is no project's: what reads rows, notes or the machine's needs refuses it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from called import in_a_pipe

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS = (
    "leaderboard",
    "leaderboard --summary",
    "plot leaderboard scores.svg",
    "store index",
    "evidence show r1-base",
    "evidence verify",
    "evidence diff r1-base r1-it01-p01",
    "evidence restore r1-base",
    "knowledge check",
    "knowledge summarize",
    "knowledge graph drawn",
    "champion gains",
    "doctor",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_it_is_neither_called_empty_nor_written_to(tmp_path: Path, command: str) -> None:
    (tmp_path / "notes.txt").touch()
    done = in_a_pipe(tmp_path, command.split())
    assert (done.status, done.stdout) == (5, ""), done
    assert done.stderr.startswith(f"error[EOP601] no config/config.yaml in {tmp_path}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("part", ["leaderboard", "knowledge"])
def test_rows_and_notes_may_be_read_without_a_config(tmp_path: Path, part: str) -> None:
    (tmp_path / part).mkdir()
    assert in_a_pipe(tmp_path, ["leaderboard"]).status == 0
    assert in_a_pipe(tmp_path, ["knowledge", "check"]).status == 0
