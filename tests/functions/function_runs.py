"""A run with every function, on disk, whose nodes tests play by hand; no model is trained."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd
from research_run import Run

from eop.agents.jail import Jail, Level
from eop.core.files import write_bytes, write_json, write_text
from eop.evidence import FileRef
from eop.functions.context import Context
from eop.project.config import Config
from eop.project.project import Project
from eop.protocol.model import Budget, FanOut, Join, Loop, Output, Phase, Plan
from eop.runtime.lifecycle import leave
from eop.runtime.node import Instance, NodeResult, Outcome, Usage

if TYPE_CHECKING:
    from pathlib import Path

    from eop.runtime.state import State

ITEMS = [
    {"id": "wide", "title": "A wider net", "hypothesis": "Width."},
    {"id": "deep", "title": "A deeper net", "hypothesis": "Depth."},
]
PATCH = "diff --git a/hstu/models/x.py b/hstu/models/x.py\n"
_IN_BRANCH = ("implement", "preflight", "train", "evaluate", "analyze")


_INSIDE: dict[str, dict[str, Any]] = {
    "implement": {
        "outputs": (
            Output("patch", "patch.diff", patch=True),
            Output("experiment", "experiment.yaml"),
        ),
        "needs": ("propose",),
        "fan_out": FanOut("proposal", "proposals", 4),
        "pattern": "linear",
        "nodes": {"worker": "scripted"},
    },
    "preflight": {"needs": ("implement",), "function": "preflight"},
    "train": {
        "needs": ("preflight",),
        "function": "train",
        "arguments": {"seeds": (1, 2)},
        "when": "preflight.passed",
    },
    "evaluate": {"needs": ("train",), "function": "evaluate"},
    "analyze": {
        "needs": ("evaluate",),
        "on_branch": ("completed", "failed", "skipped"),
        "pattern": "linear",
        "nodes": {"worker": "scripted"},
        "outputs": (Output("analysis", "analysis.md"),),
    },
}


def _phase(name: str, line: int, *outputs: Output, **more: Any) -> Phase:
    return Phase(name, line, name.title(), f"Do {name}.", outputs=outputs, **more)


def plan_of(*, in_branch: tuple[str, ...] = _IN_BRANCH, at_least: int = 0, turns: int = 3) -> Plan:
    """Baseline, proposals, a branch each, promotion and publishing, in ``turns`` iterations.

    ``in_branch`` is the document order of the phases of a branch.
    """
    names = {"train": "checkpoint", "evaluate": "metrics"}
    branch = []
    for number, name in enumerate(in_branch):
        facts = dict(_INSIDE[name])
        own = names.get(name, name)
        outputs = facts.pop("outputs", (Output(own, f"{own}.json"),))
        branch.append(_phase(name, 30 + number, *outputs, branch="proposal", **facts))
    return Plan(
        name="small",
        version="1",
        title="Small",
        source="small.eop.md",
        target="toy",
        variables={},
        budget=Budget(),
        phases=(
            _phase(
                "baseline",
                10,
                Output("baseline", "baseline.json"),
                function="baseline",
                arguments={"seeds": (1, 2)},
            ),
            _phase(
                "propose",
                20,
                Output("proposals", "proposals.json"),
                needs=("baseline",),
                pattern="linear",
                nodes={"worker": "scripted"},
            ),
            *branch,
            _phase(
                "promote",
                50,
                Output("decision", "decision.json"),
                join=Join("analyze", at_least),
                function="promote",
            ),
            _phase(
                "publish",
                60,
                Output("rows", "rows.json"),
                needs=("promote",),
                function="publish",
            ),
        ),
        gates=(),
        loop=Loop("again", 70, ("publish",), "propose", turns),
        facts={"preflight.passed": "boolean"},
    )


def config(**changes: Any) -> Config:
    values = {
        "protocol": "small.eop.md",
        "run": "r1",
        "dataset": "toy",
        "data_dir": "data/raw/toy",
        "experiment": "config/experiments/base.yaml",
        "threads": 1,
        "tolerance": 0.001,
        "isolation": "off",
        "commit": False,
        "playbook": "config/playbooks/small.yaml",
        "allow_unsafe": False,
    }
    return Config(**{**values, **changes})


@dataclass
class Small:
    """A project and its run; ``play`` does a node's work in its place."""

    project: Project
    run: Run

    @property
    def state(self) -> State:
        return self.run.advance().state

    def play(
        self,
        key: str,
        contents: dict[str, Any] | None = None,
        outcome: Outcome = Outcome.COMPLETED,
        reason: str = "",
        usage: Usage | None = None,
    ) -> None:
        """Enter, leave ``contents`` (by output name, else ``{}``), end as ``outcome``."""
        instance = Instance.parse(key)
        entered = self.run.enter(key)
        assert entered.kind == "run", entered
        files = {}
        for output in self.run.plan.phase(instance.step).outputs:
            value = (contents or {}).get(output.name, {})
            text = value if isinstance(value, str) else json.dumps(value)
            path = self.run.folder / instance.directory / "artifacts" / output.file
            if outcome is Outcome.COMPLETED or output.name in (contents or {}):
                write_text(path, text)
                files[output.name] = path
        result = NodeResult(outcome, reason, files, usage or Usage(3, 1.0))
        leave(self.run.trace, self.run.root, instance, entered.attempt, result)

    def skip(self, *keys: str) -> None:
        for key in keys:
            assert self.run.enter(key).kind == "skip", key

    def context(self, key: str) -> Context:
        instance = Instance.parse(key)
        phase = self.project.plan.phase(instance.step)
        return Context(self.project, phase, instance, self.state, Jail(Level.NONE))

    def to_branches(self, iteration: int = 1) -> None:
        self.run.advance()
        if iteration == 1:
            self.play("it01_baseline", {"baseline": self.baseline()})
        self.play(f"it{iteration:02d}_propose", {"proposals": ITEMS})
        assert self.state.branches[iteration, "proposal"]

    def baseline(self) -> dict[str, Any]:
        folder = self.run.folder / "it01/baseline/work"
        return {
            "metrics": metrics(self.project.root, folder, 0.1),
            "checkpoint": checkpoint(self.project.root, folder),
            "noise": {
                "metric": "ndcg@10",
                "mean": 0.1,
                "deviation": 0.001,
                "half_width": 0.002,
                "seeds": 2,
                "twin": None,
                "twins": [],
            },
            "popularity": metrics(self.project.root, folder / "pop", 0.05, seeds=(0,)),
        }

    def branch(
        self,
        branch: str,
        iteration: int = 1,
        *,
        ndcg: float = 0.2,
        patch: str = PATCH,
        processes: int = 1,
    ) -> None:
        """A branch that comes to its end, with real files behind its documents."""
        at = f"it{iteration:02d}_{branch}"
        work = self.run.folder / f"it{iteration:02d}/{branch}"
        root = self.project.root
        self.play(f"{at}_implement", {"patch": patch, "experiment": f"name: {branch}\n"})
        self.play(f"{at}_preflight", {"preflight": {"passed": True, "invariants": []}})
        trained = {**checkpoint(root, work / "train/work"), "processes": processes}
        self.play(f"{at}_train", {"checkpoint": trained})
        self.play(f"{at}_evaluate", {"metrics": metrics(root, work / "evaluate/work", ndcg)})
        self.play(f"{at}_analyze", {"analysis": "It went well.\n"})

    def lose(self, branch: str, iteration: int = 1, reason: str = "it does not start") -> None:
        """A branch whose first step fails."""
        at = f"it{iteration:02d}_{branch}"
        self.play(f"{at}_implement", outcome=Outcome.FAILED, reason=reason)
        self.skip(f"{at}_preflight", f"{at}_train", f"{at}_evaluate")
        self.play(f"{at}_analyze", {"analysis": "It failed.\n"})


def small(root: Path, *, plan: Plan | None = None, **changes: Any) -> Small:
    """A run that has just begun, in an empty project at ``root``."""
    run = Run(root, plan or plan_of())
    project = Project(root, config(**changes), run.plan)
    write_json(run.folder / "config.json", project.config.to_json())
    write_text(project.base_experiment, "name: base\n")
    return Small(project, run)


def checkpoint(root: Path, folder: Path, seeds: tuple[int, ...] = (1, 2)) -> dict[str, Any]:
    """A ``checkpoint`` document and the files that it names."""
    trained = []
    for seed in seeds:
        own = folder / f"seed{seed}"
        write_bytes(own / "model.safetensors", b"weights %d" % seed)
        write_text(own / "checkpoint.json", "{}")
        write_text(own / "curve.tsv", f"epoch\tloss\tseconds\n1\t{seed}.5\t0.25\n2\t1.5\t0.5\n")
        files = {"checkpoint": "checkpoint.json", "model": "model.safetensors"}
        refs = {key: ref(root, own / name) for key, name in {**files, "curve": "curve.tsv"}.items()}
        trained.append({"seed": seed, **refs})
    return {"schema": "checkpoint/1", "seeds": trained}


def metrics(
    root: Path, folder: Path, ndcg: float, seeds: tuple[int, ...] = (1, 2)
) -> dict[str, Any]:
    """A ``metrics`` document and the files that it names; every user has the same rank."""
    rows, sealed = [], []
    for seed in seeds:
        values = {"ndcg@10": ndcg, "hr@10": ndcg, "mrr": ndcg}
        for target in ("validation", "test"):
            own = folder / f"seed{seed}-{target}"
            write_json(own / "metrics.json", {"schema": "hstu.metrics/1", "metrics": values})
            users = list(range(1, 21))
            frame = pd.DataFrame({"user_id": users, "rank": [max(1, round(1 / ndcg))] * 20})
            frame.to_parquet(own / "ranks.parquet", index=False)
        val, test = folder / f"seed{seed}-validation", folder / f"seed{seed}-test"
        rows.append({"seed": seed, "metrics": values, "ranks": ref(root, val / "ranks.parquet")})
        sealed.append(
            {
                "seed": seed,
                "metrics": ref(root, test / "metrics.json"),
                "ranks": ref(root, test / "ranks.parquet"),
            }
        )
    return {
        "metrics": {"ndcg@10": ndcg, "hr@10": ndcg, "mrr": ndcg},
        "seeds": rows,
        "sealed": {"target": "test", "reads": 1, "seeds": sealed},
    }


def ref(root: Path, path: Path) -> dict[str, Any]:
    return FileRef.of(path, root).to_json()
