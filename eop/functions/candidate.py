"""Functions ``preflight``, ``train``, ``evaluate``: a branch's patch, checked, trained, judged."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from eop.core.files import read_json, write_json
from eop.functions.artifacts import EXPERIMENT_FILE
from eop.functions.measure import judge_seeds, train_seeds
from eop.functions.recommender import CandidateError

if TYPE_CHECKING:
    from pathlib import Path

    from eop.functions.context import Context


def preflight(context: Context) -> Path:
    """Check the patched tree before it costs a training; ``CandidateError`` when it fails."""
    result = context.recommender().preflight(context.experiment())
    report = context.work / "preflight.json"
    if not result["passed"]:
        raise CandidateError(failures(result), report=report)
    return report


def check_tree(context: Context, tree: Path, out: Path) -> Path:
    """Preflight of a tree that is still being worked on; the report, whatever it says.

    A tree that does not even start gets a report with one invariant in error.
    """
    recommender = replace(context.recommender(), tree=tree.resolve(), scratch=out.resolve())
    report = out / "preflight.json"
    try:
        recommender.preflight(tree.resolve() / EXPERIMENT_FILE)
    except CandidateError as error:
        start = {"id": "I0", "title": "the checks start", "status": "error", "detail": str(error)}
        result = {"schema": "preflight/1", "passed": False, "invariants": [start]}
        write_json(report, result)
    return report


def failures(result: dict[str, Any]) -> str:
    """What a preflight report objects to, in one line."""
    bad = [item for item in result["invariants"] if item["status"] != "passed"]
    return "; ".join(f"{item['id']} ({item['title']}): {item['detail']}" for item in bad)


def train(context: Context) -> Path:
    """Train the patched tree once per seed."""
    checkpoint = train_seeds(
        context.root, context.recommender(), context.experiment(), context.phase.arguments["seeds"]
    )
    report = context.work / "checkpoint.json"
    write_json(report, checkpoint)
    return report


def evaluate(context: Context) -> Path:
    """Judge the branch's checkpoints with the pristine evaluator."""
    checkpoint = read_json(context.produced("train"))
    report = context.work / "metrics.json"
    write_json(report, judge_seeds(context.root, context.recommender(), checkpoint))
    return report
