"""`kill -9` in every phase, then the same command: it ends with the leaderboard of a quiet run."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from conftest import Project, copy_sources

if TYPE_CHECKING:
    from pathlib import Path

RUN = "short-synthetic"
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
PLAYBOOK = {
    "steps": [
        {
            "when": {"phase": "propose"},
            "do": [
                {
                    "write": {
                        "output": "proposals",
                        "json": [
                            {
                                "id": name,
                                "title": name,
                                "hypothesis": "it may help",
                                "change": "see the patch",
                                "falsifier": "NDCG@10 falls",
                                "risks": [],
                            }
                            for name in ("no-residual", "crash")
                        ],
                    }
                }
            ],
        },
        {
            "when": {"phase": "implement", "role": "implementer", "proposal": "no-residual"},
            "do": [{"edits": "demo/no-residual.yaml"}],
        },
        {"when": {"phase": "implement", "role": "implementer"}, "do": [{"crash": 3}]},
        {
            "when": {"phase": "implement", "role": "reviewer"},
            "do": [{"review": {"from_check": True}}],
        },
        *(
            {"when": {"phase": phase}, "do": [{"write": {"output": output, "text": "as seen"}}]}
            for phase, output in (
                ("investigate_code", "code_report"),
                ("investigate_data", "data_report"),
                ("analyze", "analysis"),
            )
        ),
        {
            "when": {"phase": "evolve"},
            "do": [{"write": {"output": "directions", "json": [{"title": "stop", "why": "end"}]}}],
        },
    ]
}


def short_project(to: Path) -> Project:
    """The demo's procedure with one turn, one seed and one epoch."""
    project = copy_sources(to)
    config = project.root / "config"
    protocol = (config / "protocols/demo.eop.md").read_text()
    protocol = protocol.replace("name: demo", "name: short").replace("max: 2\n", "max: 1\n")
    (config / "protocols/short.eop.md").write_text(protocol.replace("[1, 2]", "[1]"))
    (config / "playbooks/short.yaml").write_text(yaml.safe_dump(PLAYBOOK))
    experiment = config / "experiments/synthetic.yaml"
    experiment.write_text(experiment.read_text().replace("epochs: 2", "epochs: 1"))
    project.configure(protocol="config/protocols/short.eop.md")
    return project


def approve_all(project: Project) -> None:
    for page in (project.root / "gates").rglob("*.request.md"):
        page.with_name(page.name.replace("request.md", "approved")).touch()


def to_the_end(project: Project) -> None:
    for _ in range(8):
        done = project.snakemake("--quiet")
        assert done.returncode == 0, done.stdout + done.stderr
        if "RUN ENDED: completed" in done.stderr:
            return
        approve_all(project)
    raise AssertionError("the run did not end")


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


def leaderboard(project: Project) -> dict[str, Any]:
    """What a leaderboard says; times and costs are left out, they are those of each run."""
    rows = {}
    for path in sorted((project.root / "leaderboard").glob("*/entry.yaml")):
        entry = yaml.safe_load(path.read_text())
        names = ("outcome", "reason", "validation", "test", "decision", "parent", "kind")
        rows[entry["id"]] = {name: entry[name] for name in names}
        rows[entry["id"]]["patch"] = entry["evidence"]["patch"]
        rows[entry["id"]]["checkpoints"] = entry["evidence"]["checkpoints"]
    return rows


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
