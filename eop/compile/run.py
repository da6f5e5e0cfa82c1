"""A run's rules: one file per live iteration, ``frontier.smk``, one spec per proposal."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eop.compile.placement import cores, grouped, stays
from eop.compile.results import left_or_open, of_step
from eop.compile.rules import Rule
from eop.core.files import dumps
from eop.protocol.model import Gate, Phase
from eop.runtime.frontier import dependencies
from eop.runtime.lifecycle import outcome
from eop.runtime.node import Branch, Instance

if TYPE_CHECKING:
    from pathlib import Path

    from eop.project.project import Project
    from eop.runtime.frontier import Frontier
    from eop.runtime.state import State

_HEADER = "# Compiled from {source}; edits are overwritten by the next `snakemake`.\n"
# Generated files lie in runs/<run>/rules/, and `script:` is relative to the file it stands in.
_SCRIPTS = "../../../scripts/"
_FALLBACK_MINUTES = 60
# Jobs of one branch that follow each other go to a cluster together.
_GROUP = "training"


@dataclass(frozen=True)
class Compiled:
    """What a compilation writes: text by absolute path. Equal plan and state, equal text."""

    files: dict[Path, str]


def compile_run(project: Project, state: State, frontier: Frontier) -> Compiled:
    """The rules of the live iteration, its targets, and what finished iterations left behind.

    Finished iterations are not compiled again: their outcomes stand as source files, so that
    parsing stays bounded however long a run gets.
    """
    files: dict[Path, str] = {}
    by_iteration: dict[int, list[Instance]] = defaultdict(list)
    for instance in frontier.instances:
        by_iteration[instance.iteration].append(instance)
    for iteration, instances in by_iteration.items():
        rules = [_rule(project, state, instance) for instance in instances]
        header = _HEADER.format(source=project.config.protocol)
        path = project.rules_dir / f"it{iteration:02d}.smk"
        files[path] = "\n\n".join([header, *(rule.text() for rule in rules)])
    files |= _specs(project, state)
    files |= _archive(project, state, live=set(by_iteration))
    files[project.rules_dir / "frontier.smk"] = _frontier_text(project, state, frontier)
    return Compiled(files)


def outcome_path(project: Project, instance: Instance) -> str:
    """A node's outcome file: what Snakemake sees of it. Relative to the root."""
    return f"runs/{project.run}/{instance.directory}/outcome.json"


def spec_path(project: Project, iteration: int, branch: Branch) -> str:
    """A branch's spec: the source file that it depends on. Relative to the root.

    Branches of several fan-outs share folders, so there the name says which it is of.
    """
    name = f"spec-{branch.item}.json" if len(project.plan.heads) > 1 else "spec.json"
    return f"runs/{project.run}/it{iteration:02d}/{branch.name}/{name}"


def _rule(project: Project, state: State, instance: Instance) -> Rule:
    step = project.plan.steps[instance.step]
    kind = "gate" if isinstance(step, Gate) else "phase"
    place = f"iteration {instance.iteration}" + (f", {instance.branch}" if instance.branch else "")
    return Rule(
        name=instance.key,
        comment=f"{project.plan.source}:{step.line}  {kind} {step.id}, {place}",
        inputs=_inputs(project, state, instance),
        output=outcome_path(project, instance),
        params={"run": project.run, "node": instance.key, "code": _code(project, step)},
        log=f"runs/{project.run}/logs/{instance.key}.log",
        benchmark=f"runs/{project.run}/benchmarks/{instance.key}.tsv",
        message=f"{step.id} ({place}{_title(project, state, instance)})",
        script=f"{_SCRIPTS}{kind}.py",
        threads=cores(step, project.config.threads),
        minutes=_minutes(step),
        gpus=step.resources.gpus if isinstance(step, Phase) else 0,
        ram_mb=step.resources.ram_mb if isinstance(step, Phase) else None,
        local=stays(step, project.config.agent_jobs),
        group=_GROUP if grouped(project.plan, step) else None,
        result=of_step(project.plan, state, instance),
    )


def _inputs(project: Project, state: State, instance: Instance) -> tuple[str, ...]:
    step = project.plan.steps[instance.step]
    needed = dependencies(project.plan, state, instance)
    paths = [outcome_path(project, dependency) for dependency in needed]
    if isinstance(step, Phase) and step.fan_out and instance.branch:
        branch = Branch(step.fan_out.item, instance.branch)
        paths.append(spec_path(project, instance.iteration, branch))
    if not needed:
        paths.append(project.relative(project.split_dir / "manifest.json"))
    return tuple(paths)


def _code(project: Project, step: Phase | Gate) -> str:
    """Identity of the code that a rule runs: the pinned snapshot for functions, else the plan."""
    if isinstance(step, Phase) and step.function:
        return f"snapshot:{project.snapshot.stem}"
    return f"plan:{project.plan.digest[:16]}"


def _title(project: Project, state: State, instance: Instance) -> str:
    step = project.plan.steps[instance.step]
    if instance.branch is None or isinstance(step, Gate) or step.branch is None:
        return ""
    return f": {state.branches[instance.iteration, step.branch][instance.branch]}"


def _minutes(step: Phase | Gate) -> int:
    """Time limit of a job, minutes: it makes all attempts of its node."""
    if not isinstance(step, Phase) or not step.budget.wall_s:
        return _FALLBACK_MINUTES
    return math.ceil(step.budget.attempts * step.budget.wall_s / 60) + 1


def _specs(project: Project, state: State) -> dict[Path, str]:
    """One file per branch, so that a new proposal makes no other one stale."""
    return {
        project.root / spec_path(project, iteration, Branch(item, name)): dumps(
            {
                "run": project.run,
                "iteration": iteration,
                "item": item,
                "branch": name,
                "title": title,
            }
        )
        for (iteration, item), branches in state.branches.items()
        for name, title in branches.items()
    }


def _archive(project: Project, state: State, live: set[int]) -> dict[Path, str]:
    """Outcome files of finished iterations, rewritten from the trace should one be missing."""
    return {
        project.root / outcome_path(project, instance): dumps(outcome(state, instance))
        for instance in left_or_open(state)
        if instance.iteration not in live
    }


def _frontier_text(project: Project, state: State, frontier: Frontier) -> str:
    """What `rule all` asks for, and the outcome of each iteration's publishing."""
    run = f"runs/{project.run}"
    published = _published(project, state, frontier)
    targets = [outcome_path(project, instance) for instance in frontier.instances]
    targets += [f"{run}/{iteration}/recorded.json" for iteration in published]
    shown = ("report.html", "leaderboard.svg", "noise.svg")
    targets += [f"{run}/{name}" for name in shown] if published else []
    return "\n".join(
        [
            _HEADER.format(source=project.config.protocol),
            "TARGETS = [",
            *(f"    {target!r}," for target in targets),
            "]",
            "PUBLISHED = {",
            *(f"    {iteration!r}: {path!r}," for iteration, path in published.items()),
            "}",
            f"STANDING = {_standing(state)!r}",
            "",
        ]
    )


def _standing(state: State) -> str:
    """What people have decided and how the run ended: the report is made again when it changes."""
    decided = [f"{key} {gate.status}" for key, gate in state.gates.items() if gate.by]
    return ", ".join([*decided, f"ended {state.ended}" if state.ended else "going on"])


def _published(project: Project, state: State, frontier: Frontier) -> dict[str, str]:
    """Iterations (``it01``) that have published or may, with the outcome file of it."""
    left = [Instance.parse(key) for key, node in state.nodes.items() if node.completed]
    found = {}
    for instance in sorted({*left, *frontier.instances}):
        step = project.plan.steps[instance.step]
        if isinstance(step, Phase) and step.function == "publish":
            found[f"it{instance.iteration:02d}"] = outcome_path(project, instance)
    return found
