"""Function ``baseline``: what a proposal must beat, measured before the first proposal."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from eop.core.files import write_json
from eop.functions.measure import judge_popularity, judge_seeds, refit_seeds, train_seeds
from eop.stats import noise_band

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from eop.functions.context import Context


def baseline(context: Context) -> Path:
    """Train and judge the unpatched snapshot with every seed, and popularity beside it.

    ``noise`` is what no proposal has caused: the spread over seeds, and how far the seeds named in
    ``twins`` come out apart when they are trained and judged a second time. In a protocol with a
    ``refit`` the base is refitted too, once its validation numbers are there.
    """
    root, recommender = context.root, context.recommender()
    experiment, seeds = context.project.base_experiment, context.phase.arguments["seeds"]
    refits = context.project.plan.runs("refit")
    checkpoint = train_seeds(root, recommender, experiment, seeds)
    metrics = judge_seeds(root, recommender, checkpoint, test=not refits)
    again = {"refit": refit_seeds(root, recommender, experiment, seeds)} if refits else {}
    found = {seed["seed"]: seed["metrics"]["ndcg@10"] for seed in metrics["seeds"]}
    twins = _twins(context, context.phase.arguments.get("twins", ()))
    noise = noise_band(list(found.values()), [twins[seed] - found[seed] for seed in twins])
    report = context.work / "baseline.json"
    write_json(
        report,
        {
            "schema": "baseline/1",
            "checkpoint": checkpoint,
            "metrics": metrics,
            "noise": {"metric": "ndcg@10", **asdict(noise), "twins": sorted(twins)},
            "popularity": judge_popularity(root, recommender),
            **again,
        },
    )
    return report


def _twins(context: Context, seeds: Sequence[int]) -> dict[int, float]:
    """NDCG@10 on validation of the same seeds, trained and judged again in a folder of its own."""
    if not seeds:
        return {}
    recommender = context.recommender()
    again = replace(recommender, scratch=recommender.scratch / "twins")
    experiment = context.project.base_experiment
    checkpoint = train_seeds(context.root, again, experiment, seeds)
    judged = judge_seeds(context.root, again, checkpoint, test=False)
    return {seed["seed"]: seed["metrics"]["ndcg@10"] for seed in judged["seeds"]}
