"""A run that is short: the demo's procedure with one turn and one seed, and what comes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml
from conftest import Project, copy_sources

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

RUN = "short-synthetic"


def playbook(proposals: Sequence[str]) -> dict[str, Any]:
    """Agents that propose these, and implement `no-residual`; any other crashes."""
    return {
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
                                for name in proposals
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
                "do": [
                    {"write": {"output": "directions", "json": [{"title": "stop", "why": "end"}]}}
                ],
            },
            {
                "when": {"phase": "rank"},
                "do": [
                    {"write": {"output": "ranking", "json": [{"direction": 1, "why": "only one"}]}}
                ],
            },
        ]
    }


def short_project(
    to: Path, proposals: Sequence[str] = ("no-residual", "crash"), epochs: int = 1
) -> Project:
    """The demo's procedure with one turn and one seed."""
    project = copy_sources(to)
    config = project.root / "config"
    protocol = (config / "protocols/demo.eop.md").read_text()
    protocol = protocol.replace("name: demo", "name: short").replace("max: 2\n", "max: 1\n")
    (config / "protocols/short.eop.md").write_text(protocol.replace("[1, 2]", "[1]"))
    (config / "playbooks/short.yaml").write_text(yaml.safe_dump(playbook(proposals)))
    experiment = config / "experiments/synthetic.yaml"
    experiment.write_text(experiment.read_text().replace("epochs: 2", f"epochs: {epochs}"))
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
