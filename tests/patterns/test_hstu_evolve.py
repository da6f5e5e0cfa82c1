"""The agents of `hstu-evolve` on files of the real model: as shipped, and with one line changed."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from toy_target import ROOT, SCHEMAS, task

from eop.agents import target
from eop.agents.products.scripted import SCRIPTED, load
from eop.patterns import run
from eop.protocol import compiler
from eop.runtime.node import Outcome

if TYPE_CHECKING:
    from pathlib import Path

    from eop.protocol.model import Plan
    from eop.runtime.node import NodeResult

PROTOCOL = ROOT / "config/protocols/hstu-evolve.eop.md"
PLAYBOOK = ROOT / "config/playbooks/hstu-evolve.yaml"
SHIPPED = "pattern: plan_then_implement\n"
LEAK = "rows = rows + self.config.model.genre_alpha"


def plan(folder: Path, pattern: str) -> Plan:
    """The shipped protocol with the line of `implement` that names its pattern."""
    text = PROTOCOL.read_text()
    assert text.count(f"\n{SHIPPED}") == 1
    path = folder / "hstu-evolve.eop.md"
    path.write_text(text.replace(SHIPPED, pattern))
    return compiler.load(path, root=ROOT)


def check(tree: Path, out: Path) -> Path:
    """What preflight would find, by the one thing that makes it so: the lookup of the targets."""
    leaks = LEAK in (tree / "hstu/models/hstu.py").read_text()
    item = {"id": "I5", "title": "one score", "status": "failed" if leaks else "passed"}
    report = out / "preflight.json"
    report.write_text(json.dumps({"passed": not leaks, "invariants": [item]}))
    return report


def play(folder: Path, plan: Plan, phase: str, **more: Any) -> NodeResult:
    """One agent phase of the plan, played by the shipped playbook in the first turn."""
    folder.mkdir()
    base = folder / "base"
    for part in ("models", "config"):
        for path in (ROOT / "hstu" / part).glob("*.py"):
            copy = base / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    shutil.copytree(base, folder / "snapshot")
    shutil.copy(ROOT / "config/experiments/base.yaml", base / "experiment.yaml")
    cast = {name: load(PLAYBOOK, SCHEMAS["playbook"], kind) for name, kind in SCRIPTED.items()}
    work = task(folder, plan.phase(phase), cast["scripted"], products=cast, base=base, **more)
    return run(replace(work, target=target.load(ROOT / "config/targets/hstu.yaml")))


def read(result: NodeResult, name: str) -> Any:
    assert result.outcome is Outcome.COMPLETED, result.reason
    return json.loads(result.artifacts[name].read_text())


def test_proposals_come_from_workers_of_both_vendors(tmp_path: Path) -> None:
    result = play(tmp_path / "propose", plan(tmp_path, SHIPPED), "propose", item=None)
    proposals = read(result, "proposals")
    assert [one["id"] for one in proposals] == ["genre-input", "less-dropout"]
    workers = read(result, "workers")["workers"]
    assert [one["product"] for one in workers] == ["scripted", "scripted-peer"]


@pytest.mark.parametrize("pattern", [SHIPPED, "pattern: plan_merge\n"])
def test_a_leak_is_planned_against_made_and_mended(tmp_path: Path, pattern: str) -> None:
    item = {"id": "genre-input", "slug": "genre-input", "title": "Genres"}
    result = play(
        tmp_path / "implement", plan(tmp_path, pattern), "implement", item=item, check=check
    )
    review, planned = read(result, "review"), read(result, "plan_review")
    for record in (review, planned):
        assert [one["verdict"] for one in record["rounds"]] == ["fix", "approved"]
        assert {one["reviewer"] for one in record["rounds"]} == {"scripted-peer"}
    families = {one["id"]: one["family"] for one in review["findings"]}
    assert families == {"check-I5": "none", "lookup-of-targets": "tensor_routing"}
    assert "in `embed_inputs` alone" in result.artifacts["plan"].read_text()
    patch = result.artifacts["patch"].read_text()
    assert "+" in patch
    assert LEAK not in patch
    assert "genre_alpha: 0.5" in result.artifacts["experiment"].read_text()


def test_a_critic_of_another_vendor_ranks_the_directions(tmp_path: Path) -> None:
    decision = tmp_path / "decision.json"
    decision.write_text(json.dumps({"champion": "genre-input"}))
    shipped = plan(tmp_path, SHIPPED)
    inputs = {"decision": decision}
    named = play(tmp_path / "evolve", shipped, "evolve", item=None, inputs=inputs)
    assert len(read(named, "directions")) == 2
    assert shipped.phase("rank").nodes == {"critic": "scripted-peer"}
    inputs = {"directions": named.artifacts["directions"]}
    result = play(tmp_path / "rank", shipped, "rank", item=None, inputs=inputs)
    assert [one["direction"] for one in read(result, "ranking")] == [2, 1]
