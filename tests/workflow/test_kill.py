"""`kill -9` in every phase, then the same command: it ends with the leaderboard of a quiet run."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from conftest import Project
from short_run import RUN, approve_all, leaderboard, short_project, to_the_end

if TYPE_CHECKING:
    from pathlib import Path

# Node to wait for, and whether its own process dies too (a crash of the machine) or lives on as an
# orphan (a kill of Snakemake alone).
KILLS = [
    ("it01_investigate_code", "all"),
    ("it01_baseline", "snakemake"),
    ("it01_p01_implement", "all"),
    ("it01_p01_train", "snakemake"),
    ("it01_p01_evaluate", "all"),
    ("it01_promote", "all"),
    ("it01_publish", "snakemake"),
]


def entered(project: Project) -> list[str]:
    entries = [event for event in project.recorded(RUN) if event["type"] == "node_entered"]
    return [event["data"]["node"] for event in entries]


def kill_in(project: Project, node: str, whom: str) -> None:
    """Run until ``node`` is at work, answering gates, and kill there."""
    for _ in range(4):
        before = entered(project).count(node)
        process = subprocess.Popen(
            [sys.executable, "-m", "snakemake", "--cores", "2", "--quiet"],
            cwd=project.root,
            env={**os.environ, "PYTHONPATH": str(project.root)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        while process.poll() is None and entered(project).count(node) == before:
            time.sleep(0.05)
        if process.poll() is None:
            time.sleep(0.3)
            (os.killpg if whom == "all" else os.kill)(process.pid, signal.SIGKILL)
            process.wait()
            return
        approve_all(project)
    raise AssertionError(f"{node} was never entered")


@pytest.mark.slow
@pytest.mark.xdist_group("kill")
def test_killed_in_every_phase_it_ends_as_if_nothing_had_happened(tmp_path: Path) -> None:
    quiet = short_project(tmp_path / "quiet")
    shaken = Project(tmp_path / "shaken")
    shutil.copytree(quiet.root, shaken.root)
    to_the_end(quiet)
    for node, whom in KILLS:
        kill_in(shaken, node, whom)
    to_the_end(shaken)

    expected = leaderboard(quiet)
    assert len(expected) == 4
    assert expected[f"{RUN}-it01-p01"]["outcome"] == "completed"
    assert expected[f"{RUN}-it01-p02"]["outcome"] == "failed"
    assert expected[f"{RUN}-it01-p02"]["validation"] is None
    assert leaderboard(shaken) == expected
    for project in (quiet, shaken):
        assert project.eop("verify").returncode == 0
