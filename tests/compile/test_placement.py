"""Which jobs of the shipped protocols go to a cluster, and which of them together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from eop.compile.placement import cores, grouped, stays
from eop.protocol.compiler import load
from eop.protocol.model import Plan, Resources

ROOT = Path(__file__).parents[2]


def shipped(name: str) -> Plan:
    return load(ROOT / "config" / "protocols" / f"{name}.eop.md", root=ROOT)


@pytest.mark.parametrize(
    ("name", "network"),
    [
        ("demo", {"baseline", "train", "evaluate"}),
        ("hstu-recipes", {"baseline", "train", "evaluate", "refit"}),
    ],
)
def test_trainings_leave_the_head_node_and_a_branch_s_are_one_job(
    name: str, network: set[str]
) -> None:
    plan = shipped(name)
    agents = {phase.id for phase in plan.phases if phase.pattern}
    gone = {step for step in plan.steps if not stays(plan.steps[step], "head")}
    assert gone == network | {"preflight"}
    far = {step for step in plan.steps if not stays(plan.steps[step], "cluster")}
    assert far == gone | agents
    together = {step for step in plan.steps if grouped(plan, plan.steps[step])}
    assert together == network - {"baseline"}


def test_what_waits_for_something_else_too_is_a_job_of_its_own() -> None:
    """Were train and evaluate one job, it and the analysis between them would wait in a ring."""
    plan = shipped("demo")
    evaluate = replace(plan.phase("evaluate"), needs=("train", "implement"))
    phases = tuple(evaluate if one.id == "evaluate" else one for one in plan.phases)
    other = replace(plan, phases=phases)
    assert not any(grouped(other, step) for step in other.steps.values())


def test_cores() -> None:
    plan = shipped("demo")
    train, analyze = plan.phase("train"), plan.phase("analyze")
    assert (cores(train, 4), cores(analyze, 4)) == (4, 1)
    wide = Resources(cpus=8)
    assert cores(replace(train, resources=wide), 4) == cores(replace(analyze, resources=wide), 4)
    assert cores(replace(train, resources=Resources(cpus=2)), 4) == 4


def test_each_process_of_a_training_has_its_cores() -> None:
    train = shipped("demo").phase("train")
    assert cores(replace(train, resources=Resources(gpus=1)), 3) == 3
    assert cores(replace(train, resources=Resources(gpus=4)), 3) == 12
    assert cores(replace(train, resources=Resources(cpus=16, gpus=4)), 3) == 16
