"""Lines that are printed to be typed: a shell reads them as they are meant."""

from __future__ import annotations

import shlex
from types import SimpleNamespace
from typing import TYPE_CHECKING

from click.testing import CliRunner

from eop.cli import cli, run

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_folder_with_a_space_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "sp ace"
    done = CliRunner().invoke(cli, ["init", str(folder), "--protocol", "minimal"])
    assert done.exit_code == 0, done.output
    [line] = [line for line in done.output.splitlines() if line.startswith("  cd ")]
    assert shlex.split(line)[:3] == ["cd", str(folder), "&&"]

    played = SimpleNamespace(run_dir=folder / "runs/demo")
    monkeypatch.setattr(run, "play", lambda *_, **__: played)
    monkeypatch.setattr(run, "leaderboard_text", lambda _: "")
    monkeypatch.setattr(run, "base_id", lambda _: "demo-base")
    monkeypatch.setattr("sys.executable", "/a venv/bin/python")
    done = CliRunner().invoke(cli, ["demo", str(folder)])
    assert done.exit_code == 0, done.output
    line = done.output.splitlines()[-1].removeprefix("make a row again")
    words = shlex.split(line)
    assert words[:6] == [".", "/a venv/bin/activate", "&&", "cd", str(folder), "&&"]
