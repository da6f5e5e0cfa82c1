"""Function ``baseline``: what a proposal must beat, measured before the first proposal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eop.core.files import write_json
from eop.functions.measure import judge_popularity, judge_seeds, train_seeds

if TYPE_CHECKING:
    from pathlib import Path

    from eop.functions.context import Context


def baseline(context: Context) -> Path:
    """Train and judge the unpatched snapshot with every seed, and popularity beside it."""
    recommender = context.recommender()
    seeds = context.phase.arguments["seeds"]
    checkpoint = train_seeds(context.root, recommender, context.project.base_experiment, seeds)
    report = context.work / "baseline.json"
    write_json(
        report,
        {
            "schema": "baseline/1",
            "checkpoint": checkpoint,
            "metrics": judge_seeds(context.root, recommender, checkpoint),
            "popularity": judge_popularity(context.root, recommender),
        },
    )
    return report
