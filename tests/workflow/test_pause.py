"""A run that a person pauses while Snakemake drives it, by `snakemake` and by `eop run`."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
import yaml
from click.testing import CliRunner

from eop.cli import cli

if TYPE_CHECKING:
    from conftest import Project

RUN = "minimal-synthetic"
PROTOCOL = """---
{eop: 1, name: minimal, version: 0.1.0, target: hstu, budget: {actions: 40, wall: 10m}}
---
```eop
{phase: look, pattern: linear, nodes: {reader: scripted}, tools: [read], budget: {actions: 10, wall: 2m}, outputs: {report: {file: report.md}}}
```
Look.
```eop
{phase: advise, needs: [look], pattern: linear, nodes: {adviser: scripted}, tools: [read], budget: {actions: 10, wall: 2m}, outputs: {advice: {file: advice.md}}}
```
Advise.
"""  # noqa: E501 - a block of a protocol has one line


def slow(project: Project) -> None:
    """Two phases, one after the other; the agent of the first takes its time."""
    (project.root / "config/protocols/minimal.eop.md").write_text(PROTOCOL)
    path = project.root / "config/playbooks/minimal.yaml"
    playbook = yaml.safe_load(path.read_text())
    playbook["steps"][0]["do"].insert(0, {"hang": 4})
    path.write_text(yaml.safe_dump(playbook))


def paused_at_work(project: Project, *command: str) -> tuple[int, str]:
    """Start it, pause while the first agent works; its status and what it said."""
    driver = subprocess.Popen(
        [sys.executable, "-m", *command],
        cwd=project.root,
        env={**os.environ, "PYTHONPATH": str(project.root)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    for _ in range(600):
        if any("node_entered" in path.read_text() for path in project.events()):
            break
        time.sleep(0.1)
    # At once, in this process: the agent does not wait for another one to start.
    done = CliRunner().invoke(cli, ["--project", str(project.root), "pause", "--reason", "lunch"])
    assert done.exit_code == 0, done.output
    assert "still at work, until they end: it01_look" in done.output
    text, _ = driver.communicate(timeout=120)
    return driver.returncode, text


@pytest.mark.parametrize(
    ("command", "status"),
    [(("snakemake", "--cores", "2"), 0), (("eop.cli", "run", "--cores", "2"), 3)],
)
def test_a_pause_ends_the_call_as_a_gate_does_and_the_same_call_goes_on(
    fresh: Project, command: tuple[str, ...], status: int
) -> None:
    slow(fresh)
    ended, text = paused_at_work(fresh, *command)
    assert ended == status, text
    for word in ("Error", "error", "Exception", "Traceback", "Exiting because"):
        assert word not in text
    assert "it01_advise has not begun: the run is paused by " in text
    assert "RUN PAUSED" in text
    assert f"eop resume --run {RUN}" in text
    assert fresh.eop("resume").returncode == 0
    again = fresh.command(sys.executable, "-m", *command)
    assert again.returncode == 0, again.stderr
    assert "RUN ENDED: completed" in again.stderr
    assert fresh.eop("verify").returncode == 0
