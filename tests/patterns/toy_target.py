"""A toy target and the parts that pattern tests share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from eop.agents.contract import Limits
from eop.agents.jail import choose
from eop.agents.products.scripted import Scripted, load
from eop.agents.target import Target
from eop.patterns import Task
from eop.protocol.model import Output, Phase, Review, Workers
from eop.protocol.patterns import PATTERNS
from eop.protocol.prompts import prompts_of

ROOT = Path(__file__).parents[2]
SCHEMAS = {
    path.name.removesuffix(".schema.yaml"): yaml.safe_load(path.read_text())
    for path in (ROOT / "config/schemas").glob("*.schema.yaml")
}
TARGET = Target("toy", ("toy",), ("toy/models/**", "experiment.yaml"))
LEAK = "return positive + genre"
CLEAN = "return positive + genre, negative + genre"
NO_JAIL = choose("off", trusted=True)
DUAL_OUTPUTS = (
    Output("patch", "patch.diff", patch=True),
    Output("experiment", "experiment.yaml"),
    Output("review", "review.json"),
)


def scripted(folder: Path, *steps: dict[str, Any]) -> Scripted:
    path = folder / "playbook.yaml"
    folder.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump({"steps": list(steps)}))
    return load(path, SCHEMAS["playbook"])


def snapshot(folder: Path) -> Path:
    tree = folder / "snapshot"
    (tree / "toy/models").mkdir(parents=True)
    (tree / "toy/evaluation").mkdir()
    (tree / "toy/models/score.py").write_text(
        "def score(positive, negative, genre):\n    return positive, negative\n"
    )
    (tree / "toy/evaluation/judge.py").write_text("def judge(): ...\n")
    return tree


def base(folder: Path) -> Path:
    tree = snapshot(folder / "base")
    (tree / "experiment.yaml").write_text("model:\n  layers: 2  # depth\n  width: 8\n")
    return tree


def check(tree: Path, out: Path) -> Path:
    """A real check on the real tree: the feature must be on both sides or on none."""
    leaks = LEAK in (text := (tree / "toy/models/score.py").read_text()) and CLEAN not in text
    item = {
        "id": "I5",
        "title": "one scoring function",
        "status": "failed" if leaks else "passed",
        "detail": "positives and negatives are scored differently" if leaks else "",
        "measured": {"difference": 0.25 if leaks else 0.0},
    }
    report = out / "preflight.json"
    report.write_text(json.dumps({"passed": not leaks, "invariants": [item]}))
    return report


def dual_phase(*, rounds: int = 2, until: str = "minor", **changes: Any) -> Phase:
    return Phase(
        id="implement",
        line=1,
        title="Implement",
        body="Implement the proposal.",
        pattern="dual",
        nodes={"implementer": "scripted", "reviewer": "scripted", "fixer": "scripted"},
        review=Review(until=until, rounds=rounds),
        tools=("read", "edit", "shell"),
        outputs=changes.pop("outputs", DUAL_OUTPUTS),
        **changes,
    )


def linear_phase(**changes: Any) -> Phase:
    return Phase(
        id="investigate",
        line=1,
        title="Investigate",
        body="Read the code.",
        pattern="linear",
        nodes=changes.pop("nodes", {"investigator": "scripted"}),
        tools=changes.pop("tools", ("read",)),
        outputs=changes.pop("outputs", (Output("report", "report.md"),)),
        **changes,
    )


PLANNED = ("planner", "plan_reviewer", "implementer", "reviewer", "fixer")
PLANNED_OUTPUTS = (
    *DUAL_OUTPUTS,
    Output("plan", "plan.md"),
    Output("plan_review", "plan-review.json", schema="review"),
)


def planned_phase(pattern: str = "plan_then_implement", **changes: Any) -> Phase:
    lanes = ("co_planner", "merger") if pattern == "plan_merge" else ()
    return Phase(
        id="implement",
        line=1,
        title="Implement",
        body="Implement the proposal.",
        pattern=pattern,
        nodes=changes.pop("nodes", dict.fromkeys((*PLANNED, *lanes), "scripted")),
        review=changes.pop("review", Review("minor", 2)),
        tools=("read", "edit"),
        outputs=changes.pop("outputs", PLANNED_OUTPUTS),
        **changes,
    )


def finding(name: str, severity: str = "major", **more: Any) -> dict[str, Any]:
    """A finding as a playbook lists it."""
    return {
        "id": name,
        "severity": severity,
        "family": "none",
        "claim": f"{name} is wrong",
        "evidence": "seen",
        "suggested_check": "look again",
        **more,
    }


def bta_phase(*, workers: Workers | None = None, **changes: Any) -> Phase:
    roles = ("breakdown", "aggregate") if changes.pop("aggregate", False) else ("breakdown",)
    return Phase(
        id="propose",
        line=1,
        title="Propose",
        body="Propose changes.",
        pattern="bta",
        nodes=changes.pop("nodes", dict.fromkeys(roles, "scripted")),
        workers=workers or Workers(("scripted",), max=4, concurrency=3),
        tools=("read",),
        outputs=changes.pop("outputs", (Output("ideas", "ideas.json"),)),
        **changes,
    )


def task(folder: Path, phase: Phase, product: Scripted, **changes: Any) -> Task:
    values: dict[str, Any] = {
        "run": "r1",
        "node": "it01_p01_implement",
        "phase": phase,
        "prompt": phase.body,
        "base": folder / "base" / "snapshot",
        "snapshot": folder / "snapshot",
        "directory": folder / "node",
        "products": {"scripted": product},
        "jail": NO_JAIL,
        "target": TARGET,
        "iteration": 1,
        "schemas": SCHEMAS,
        "prompts": prompts_of(phase, ROOT) if phase.pattern in PATTERNS else {},
        "item": {"slug": "genre", "title": "Genre feature"},
        "limits": Limits(wall_s=30, idle_s=20, grace_s=0.5),
    }
    if not (folder / "snapshot").exists():
        snapshot(folder)
        base(folder)
    return Task(**{**values, **changes})
