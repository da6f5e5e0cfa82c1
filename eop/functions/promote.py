"""Function ``promote``: the paired rule over users and seeds that names the champion."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from eop.core.files import read_json, write_json
from eop.functions.branches import branch_end, candidate_branches
from eop.functions.lineage import base_id, entry_id, start
from eop.functions.measure import measured_file
from eop.leaderboard.promotion import Candidate, Champion, Rule, decide
from eop.stats import NoiseBand, read_ranks

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from eop.functions.context import Context
    from eop.runtime.node import Branch
    from eop.stats import Ranks

_BAND = tuple(field.name for field in fields(NoiseBand))


def promote(context: Context) -> Path:
    """Compare this iteration's branches with the champion on validation; the decision."""
    iteration = context.instance.iteration
    parent = start(context.project, context.state, iteration)
    assert parent.metrics is not None, "the baseline is measured before anything is proposed"
    champion = Champion(parent.entry, ranks_by_seed(context.root, parent.metrics["seeds"]))
    branches = candidate_branches(context.project.plan, context.state, iteration)
    candidates = [_candidate(context, branch) for branch in branches]
    base = read_json(context.produced("baseline"))
    controls = [ranks_by_seed(context.root, base["metrics"]["seeds"])]
    decision = decide(
        champion,
        candidates,
        NoiseBand(**{name: base["noise"][name] for name in _BAND}),
        rule=Rule(**context.phase.arguments),
        # The base's seeds say how much training varies, also when the champion is another.
        controls=controls if champion.entry != base_id(context.project) else (),
    )
    report = context.work / "decision.json"
    write_json(report, decision)
    return report


def _candidate(context: Context, branch: Branch) -> Candidate:
    iteration = context.instance.iteration
    end = branch_end(context.project, context.state, iteration, branch)
    return Candidate(
        proposal=context.artifacts.proposal(iteration, branch)["id"],
        entry=entry_id(context.project, iteration, branch),
        outcome=end.outcome,
        ranks=ranks_by_seed(context.root, read_json(end.metrics)["seeds"]) if end.metrics else None,
    )


def ranks_by_seed(root: Path, seeds: Sequence[dict[str, Any]]) -> dict[int, Ranks]:
    """The ranks that the seeds of a ``metrics`` or a sealed document name."""
    return {seed["seed"]: read_ranks(measured_file(root, seed["ranks"])) for seed in seeds}
