"""Function ``promote``: the paired rule over users and seeds that names the champion."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eop.core.files import read_json, write_json
from eop.functions.branches import branch_end
from eop.functions.lineage import entry_id, start, validation_ranks
from eop.leaderboard import Candidate, decide

if TYPE_CHECKING:
    from pathlib import Path

    from eop.functions.context import Context


def promote(context: Context) -> Path:
    """Compare this iteration's branches with the champion on validation; the decision."""
    parent = start(context.project, context.state, context.instance.iteration)
    candidates = [
        _candidate(context, branch) for branch in context.state.branches[context.instance.iteration]
    ]
    report = context.work / "decision.json"
    write_json(report, decide(parent.champion(context.root), candidates))
    return report


def _candidate(context: Context, branch: str) -> Candidate:
    end = branch_end(context.project, context.state, context.instance.iteration, branch)
    ranks = None
    if end.metrics is not None:
        ranks = validation_ranks(context.root, read_json(end.metrics))
    return Candidate(
        proposal=context.artifacts.proposal(context.instance.iteration, branch)["id"],
        entry=entry_id(context.project, context.instance.iteration, branch),
        outcome=end.outcome,
        ranks=ranks,
    )
