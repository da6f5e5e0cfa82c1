"""What an attempt left whose runtime was killed is made safe, as soon as nobody works on it."""

from __future__ import annotations

import fcntl
import json
import os
import time
from typing import TYPE_CHECKING

import pytest

from eop.agents import orphaned

if TYPE_CHECKING:
    from pathlib import Path

KEY = "sk-ant-api03-" + "Q7r" * 30


@pytest.fixture
def cut(tmp_path: Path) -> Path:
    """An attempt's folder in which nobody has judged what it said."""
    (tmp_path / "start.json").write_text(json.dumps({"grace_s": 0.2}))
    (tmp_path / "stdout").write_text(f"my key is {KEY}\n")
    return tmp_path


def test_an_attempt_whose_supervisor_never_began_is_cleaned_at_once(
    cut: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def waits(_: float) -> None:
        pytest.fail("it waited for a supervisor that there never was")

    with monkeypatch.context() as patched:
        patched.setattr(time, "sleep", waits)
        assert orphaned.settle(cut)

    assert KEY not in (cut / "stdout").read_text()
    assert "my key is" in (cut / "stdout").read_text()


def test_nothing_is_touched_before_the_supervisor_is_through(cut: Path) -> None:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        with (cut / "start.json").open() as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            os.write(write, b"held")
            time.sleep(0.6)
            clean = KEY not in (cut / "stdout").read_text()
            (cut / "seen").write_text("clean" if clean else "as it was")
        os._exit(0)
    assert os.read(read, 4) == b"held"

    assert orphaned.settle(cut)

    assert (cut / "seen").read_text() == "as it was"
    assert KEY not in (cut / "stdout").read_text()
    os.waitpid(child, 0)


def test_one_that_does_not_come_to_its_end_is_left_alone(
    cut: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orphaned, "_SWEEP_S", 0.1)
    with (cut / "start.json").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)

        assert not orphaned.settle(cut)

    assert KEY in (cut / "stdout").read_text()


def test_an_attempt_that_never_began_has_nothing_to_clean(tmp_path: Path) -> None:
    assert orphaned.settle(tmp_path)
