"""An agent phase: gather what its agents are told and given, and run its pattern."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

from eop.agents import target as targets
from eop.agents.jail import choose
from eop.agents.products import REAL, scripted
from eop.agents.products.program import read_settings
from eop.core.files import write_json, writing
from eop.core.yaml_files import read_yaml
from eop.driver.told import prompt, recalled, sections, write_manifest
from eop.functions.artifacts import EXPERIMENT_FILE
from eop.functions.branches import branch_end
from eop.functions.candidate import check_tree
from eop.functions.lineage import start
from eop.functions.trees import candidate_tree, snapshot_tree
from eop.patterns import Task, run
from eop.project.prices import read_prices
from eop.protocol.prompts import prompts_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from eop.agents.contract import Product
    from eop.agents.jail import Jail
    from eop.functions.context import Context
    from eop.project.project import Project
    from eop.runtime.node import NodeResult


def run_agents(context: Context) -> NodeResult:
    """Run the phase's pattern on a fresh tree of the champion; outputs are in ``artifacts/``."""
    project, at = context.project, context.instance
    ready = products(project)
    branch = context.branch
    proposal = context.artifacts.proposal(at.iteration, branch) if branch else None
    known = recalled(context, proposal)
    parts, inputs = sections(context, proposal, known), _inputs(context)
    prompts = prompts_of(context.phase, project.root)
    write_manifest(context, parts, inputs, prompts.values(), known)
    return run(
        Task(
            run=project.run,
            node=at.key,
            phase=context.phase,
            prompt=prompt(parts),
            prompts=prompts,
            base=_base(context),
            snapshot=snapshot_tree(project),
            directory=context.directory,
            products=ready,
            jail=_jail(context, ready),
            target=targets.load(
                project.root / "config" / "targets" / f"{project.plan.target}.yaml"
            ),
            iteration=at.iteration,
            inputs=inputs,
            schemas=_schemas(project.root / "config" / "schemas"),
            item={**proposal, "slug": proposal["id"]} if proposal else None,
            check=(lambda tree, out: check_tree(context, tree, out))
            if context.phase.check
            else None,
            hidden=(project.root / "gates", project.split_dir),
            prices=read_prices(project.root),
        )
    )


def _base(context: Context) -> Path:
    """The champion's tree with its experiment config at the top, as agents get it."""
    champion = start(context.project, context.state, context.instance.iteration)
    tree = context.work / "base"
    if not tree.is_dir():
        draft = context.work / ".base"
        shutil.rmtree(draft, ignore_errors=True)
        shutil.copytree(candidate_tree(context.project, champion.patch), draft)
        shutil.copyfile(champion.experiment, draft / EXPERIMENT_FILE)
        with writing(tree):
            draft.rename(tree)
    return tree


def _inputs(context: Context) -> dict[str, Path]:
    """Committed artifacts of the phases that this one builds on, and plain facts as JSON."""
    project, at = context.project, context.instance
    found = {"data": project.split_dir / "manifest.json"}
    for phase in project.plan.phases:
        if context.phase.id not in project.plan.descendants(phase.id) or phase is context.phase:
            continue
        for output in phase.outputs:
            path = context.artifacts.named(output.name, at.iteration, context.branch)
            if path is not None:
                found[output.name] = path
    if "failed" in context.phase.on_branch and at.branch:
        found["branch"] = _branch_facts(context)
    return found


def _branch_facts(context: Context) -> Path:
    """How the branch went so far, step by step."""
    assert context.branch is not None
    end = branch_end(context.project, context.state, context.instance.iteration, context.branch)
    steps = {
        name: {"outcome": str(node.status), "reason": node.reason}
        for name, node in end.steps.items()
    }
    path = context.work / "branch.json"
    write_json(path, {"outcome": end.outcome, "reason": end.reason, "steps": steps})
    return path


def products(project: Project) -> Mapping[str, Product]:
    """The products that the protocol's nodes name, ready to start; ``EopError`` if one is not."""
    named = {name for phase in project.plan.phases for _, name in phase.cast}
    found: dict[str, Product] = {
        name: REAL[name](read_settings(name, project.config.agents.get(name)))
        for name in sorted(named & REAL.keys())
    }
    played = sorted(named & scripted.SCRIPTED.keys())
    schema = read_yaml(project.root / "config/schemas/playbook.schema.yaml") if played else {}
    for name in played:
        found[name] = scripted.load(project.playbook, schema, scripted.SCRIPTED[name])
    return found


def _jail(context: Context, ready: Mapping[str, Product]) -> Jail:
    """The jail of the node; without one, only the operator's word lets untrusted products run."""
    if all(product.trusted for product in ready.values()):
        return context.jail
    return choose(context.project.config.isolation, trusted=False)


def _schemas(folder: Path) -> dict[str, dict[str, Any]]:
    suffix = ".schema.yaml"
    return {
        path.name.removesuffix(suffix): read_yaml(path)
        for path in sorted(folder.glob(f"*{suffix}"))
    }
