"""Where the job of a step runs, with how many cores, and with which others it is one job."""

from __future__ import annotations

from eop.project.config import HEAD
from eop.protocol.model import Gate, Phase, Plan
from eop.protocol.signatures import FUNCTIONS, NETWORK


def cores(step: Phase | Gate, threads: int) -> int:
    """Cores of a step's job: those that it asks for, and ``threads`` where it trains or judges.

    A training over several GPUs has that many threads for each.
    """
    if not isinstance(step, Phase):
        return 1
    asked, gpus = step.resources.cpus, step.resources.gpus
    return max(asked, threads * max(1, gpus)) if _runs(step) == NETWORK else asked


def stays(step: Phase | Gate, agent_jobs: str) -> bool:
    """Whether a step's job stays where Snakemake runs, and is not given to a cluster.

    So do gates and functions that take seconds. Agents need the network and somebody's keys, which
    compute nodes may not have: ``agent_jobs`` says where they run.
    """
    if isinstance(step, Phase) and step.pattern:
        return agent_jobs == HEAD
    return _runs(step) is None


def grouped(plan: Plan, step: Phase | Gate) -> bool:
    """Whether the job goes to a cluster together with its only predecessor or its follower.

    Preflight does not: what it rejects must not have waited for a GPU. Nor does a step that waits
    for something else as well: the two jobs would wait for each other through it.
    """
    if not isinstance(step, Phase) or step.branch is None or _runs(step) != NETWORK:
        return False
    others = (phase for phase in plan.members(step.branch) if _runs(phase) == NETWORK)
    return _leader(plan, step) is not None or any(_leader(plan, one) is step for one in others)


def _leader(plan: Plan, phase: Phase) -> Phase | None:
    """The phase of its branch that trained or judged before it, if it waits for nothing else."""
    needed = plan.requirements(phase.id)
    before = plan.steps[needed[0]] if len(needed) == 1 else None
    if not isinstance(before, Phase) or before.branch != phase.branch:
        return None
    return before if _runs(before) == NETWORK else None


def _runs(step: Phase | Gate) -> str | None:
    """What a step runs of the recommender."""
    function = step.function if isinstance(step, Phase) else None
    return FUNCTIONS[function].runs if function else None
