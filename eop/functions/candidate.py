"""A branch's change: ``preflight``, ``train``, ``evaluate`` and ``refit`` of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from eop.core.canonical import digest, file_digest, tree_digest
from eop.core.files import read_json, write_json
from eop.functions.artifacts import EXPERIMENT_FILE
from eop.functions.branches import failures
from eop.functions.measure import judge_seeds, refit_seeds, train_seeds
from eop.functions.recipes import start
from eop.functions.recommender import CandidateError

if TYPE_CHECKING:
    from pathlib import Path

    from eop.functions.context import Context
    from eop.functions.recommender import Recommender


def preflight(context: Context) -> Path:
    """Check the patched tree before it costs a training; the report, whatever it says.

    What follows from it is for the protocol's guards; that nothing is trained without a report
    that passes is checked before a run begins.
    """
    report = context.work / "preflight.json"
    write_json(report, _examine(context, context.recommender(), context.experiment()))
    return report


def check_tree(context: Context, tree: Path, out: Path) -> Path:
    """Preflight of a tree that is still being worked on; the report, whatever it says.

    A tree that does not even start gets a report with one invariant in error.
    """
    recommender = replace(context.recommender(), tree=tree.resolve(), scratch=out.resolve())
    try:
        result = _examine(context, recommender, tree.resolve() / EXPERIMENT_FILE)
    except CandidateError as error:
        start = {"id": "I0", "title": "the checks start", "status": "error", "detail": str(error)}
        result = {
            "schema": "preflight/1",
            "passed": False,
            "invariants": [{**start, "measured": {}}],
        }
    report = out / "report.json"
    write_json(report, result)
    return report


def _examine(context: Context, recommender: Recommender, experiment: Path) -> dict[str, Any]:
    """The preflight report of a tree and an experiment config.

    The checks are seeded, so a report is kept by the content that it is about: what a review has
    seen checked is not checked again by the phase after it.
    """
    tree = recommender.tree
    files = [path for path in tree.rglob("*") if path.is_file()]
    if not experiment.is_file():
        raise CandidateError(f"the tree holds no {EXPERIMENT_FILE}")
    about = {
        "tree": tree_digest(tree, [p for p in files if p != tree / EXPERIMENT_FILE]),
        "experiment": file_digest(experiment),
        "split": file_digest(context.project.split_dir / "manifest.json"),
    }
    kept = context.project.run_dir / "preflight" / f"{digest(about)[:16]}.json"
    if not kept.is_file():
        write_json(kept, recommender.preflight(experiment))
    report: dict[str, Any] = read_json(kept)
    return report


def train(context: Context) -> Path:
    """Train the branch's tree once per seed; ``CandidateError`` when it has not passed preflight.

    The protocol's guard keeps such a branch from coming here.
    """
    checked = read_json(context.produced("preflight"))
    if not checked["passed"]:
        raise CandidateError(f"preflight has not passed: {failures(checked)}")
    checkpoint = train_seeds(
        context.root,
        context.recommender(),
        context.experiment(),
        context.phase.arguments["seeds"],
        start=start(context),
    )
    report = context.work / "checkpoint.json"
    write_json(report, checkpoint)
    return report


def evaluate(context: Context) -> Path:
    """Judge the branch's checkpoints with the pristine evaluator.

    In a protocol with a ``refit`` the test is judged there and not here.
    """
    checkpoint = read_json(context.produced("train"))
    test = not context.project.plan.runs("refit")
    report = context.work / "metrics.json"
    write_json(report, judge_seeds(context.root, context.recommender(), checkpoint, test=test))
    return report


def refit(context: Context) -> Path:
    """Train the branch anew on all but the test events, and judge that on the test.

    It comes after ``evaluate``: selection is over, and its numbers are committed.
    """
    context.produced("evaluate")
    seeds = [seed["seed"] for seed in read_json(context.produced("train"))["seeds"]]
    report = context.work / "refit.json"
    document = refit_seeds(
        context.root, context.recommender(), context.experiment(), seeds, start=start(context)
    )
    write_json(report, document)
    return report
