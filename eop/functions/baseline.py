"""Function ``baseline``: what a proposal must beat, measured before the first proposal."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from eop.core.files import write_json
from eop.functions.measure import judge_popularity, judge_seeds, refit_seeds, train_seeds
from eop.stats import noise_band

if TYPE_CHECKING:
    from pathlib import Path

    from eop.functions.context import Context


def baseline(context: Context) -> Path:
    """Train and judge the unpatched snapshot with every seed, and popularity beside it.

    ``noise`` is the spread over seeds: what no proposal has caused. In a protocol with a
    ``refit`` the base is refitted too, once its validation numbers are there.
    """
    root, recommender = context.root, context.recommender()
    experiment, seeds = context.project.base_experiment, context.phase.arguments["seeds"]
    refits = context.project.plan.runs("refit")
    checkpoint = train_seeds(root, recommender, experiment, seeds)
    metrics = judge_seeds(root, recommender, checkpoint, test=not refits)
    again = {"refit": refit_seeds(root, recommender, experiment, seeds)} if refits else {}
    noise = noise_band([seed["metrics"]["ndcg@10"] for seed in metrics["seeds"]])
    report = context.work / "baseline.json"
    write_json(
        report,
        {
            "schema": "baseline/1",
            "checkpoint": checkpoint,
            "metrics": metrics,
            "noise": {"metric": "ndcg@10", **asdict(noise)},
            "popularity": judge_popularity(root, recommender),
            **again,
        },
    )
    return report
