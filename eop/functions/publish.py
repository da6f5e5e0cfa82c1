"""Function ``publish``: an entry and a note for every row, whatever its end."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from eop.core.files import write_json
from eop.functions import evidence
from eop.functions.evidence_manifest import keep_manifest
from eop.functions.lineage import start
from eop.functions.measure import open_sealed
from eop.functions.promote import ranks_by_seed
from eop.functions.published import published_files
from eop.functions.results import candidates, references
from eop.functions.turn_noise import turn_noise
from eop.knowledge import write_note
from eop.leaderboard import Comparison, Cost, Decision, Entry, Scores, write_entry
from eop.runtime.node import Usage
from eop.stats import common_seeds, mean_interval, same_seed_difference

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from eop.functions.context import Context
    from eop.functions.results import Result
    from eop.functions.turn_noise import TurnNoise
    from eop.stats import SeedNoise

_FIRST = 1
# What a node costs that was skipped before its first attempt.
_NOTHING = Usage(actions=0, tokens=0, micro_usd=0)


def publish(context: Context) -> Path:
    """Write this iteration's entries and notes; the reference rows come with the first one."""
    results = references(context) if context.instance.iteration == _FIRST else []
    results += candidates(context)
    noise = turn_noise(context, results)
    for result in results:
        entry = _entry(context, result, noise)
        write_entry(context.root, entry, _files(context, result))
        evidence.keep_files(context.root, result)
        keep_manifest(context, result, entry)
        write_note(context.root, entry, result.analysis)
    report = context.work / "rows.json"
    entries = [result.id for result in results]
    files = [ref.to_json() for ref in published_files(context.project, entries)]
    write_json(report, {"schema": "rows/1", "entries": entries, "files": files})
    return report


def _entry(context: Context, result: Result, noise: TurnNoise) -> Entry:
    validation = test = None
    sealed = result.sealed
    if result.metrics is not None:
        shown = result.metrics["seeds"]
        validation = _scores(context, result, shown, shown, noise.validation)
    if sealed is not None:
        opened = open_sealed(context.root, sealed)
        test = _scores(context, result, opened, sealed["sealed"]["seeds"], noise.test)
    return Entry(
        id=result.id,
        kind=result.kind,
        run=context.project.run,
        iteration=result.iteration,
        branch=result.branch,
        proposal=result.proposal,
        parent=result.parent,
        outcome=result.outcome,
        reason=result.reason,
        validation=validation,
        test=test,
        test_reads=sealed["sealed"]["reads"] if sealed else 0,
        decision=_decision(result.verdict),
        cost=_cost(context, result),
        tolerance=context.project.config.tolerance,
        not_reproducible=result.not_reproducible,
        evidence=evidence.collect(context, result),
        on_test=_on_test(context, result, noise.test),
    )


def _on_test(context: Context, result: Result, noise: SeedNoise | None) -> Comparison | None:
    """The row against its parent on the test; ``None`` where one of them has no number there."""
    parent = start(context.project, context.state, context.instance.iteration)
    if result.parent is None or result.sealed is None or parent.sealed is None:
        return None
    own, other = (
        ranks_by_seed(context.root, document["sealed"]["seeds"])
        for document in (result.sealed, parent.sealed)
    )
    seeds = common_seeds(own, other)
    if not seeds:
        return None
    difference = same_seed_difference(own, other, noise)
    return Comparison(difference.mean, difference.interval95, tuple(seeds))


def _scores(
    context: Context,
    result: Result,
    seeds: list[dict[str, Any]],
    judged: list[dict[str, Any]],
    noise: SeedNoise | None,
) -> Scores:
    """The metrics of ``seeds``, with the interval that the ranks of ``judged`` give them."""
    trained = result.checkpoint is not None
    ranks = list(ranks_by_seed(context.root, judged).values())
    interval = mean_interval(ranks, noise if trained else None)
    scores = Scores.over_seeds({seed["seed"]: seed["metrics"] for seed in seeds}, interval)
    return scores if trained else replace(scores, seeds={})


def _decision(verdict: dict[str, Any] | None) -> Decision | None:
    if verdict is None:
        return None
    low_high, seeds = verdict["interval"], verdict.get("seeds")
    return Decision(
        promoted=verdict["promoted"],
        delta=verdict["delta"],
        interval=(low_high[0], low_high[1]) if low_high else None,
        reason=verdict["reason"],
        seeds=tuple(seeds) if seeds is not None else None,
        **{name: verdict.get(name) for name in ("p", "p_adjusted", "band", "detectable", "alpha")},
    )


def _cost(context: Context, result: Result) -> Cost:
    """What the last attempt of each of the row's nodes spent.

    A sum with an unknown part is unknown.
    """
    train_s = evidence.training_seconds(context.root, result.fits)
    usages = [node.usage if node.attempt else _NOTHING for node in result.nodes.values()]
    if not usages or None in usages:
        return Cost(None, None, train_s)
    spent = [usage for usage in usages if usage]
    micro_usd = _sum(usage.micro_usd for usage in spent)
    return Cost(
        actions=_sum(usage.actions for usage in spent),
        wall_s=sum(usage.wall_s for usage in spent),
        train_s=train_s,
        tokens=_sum(usage.tokens for usage in spent),
        usd=None if micro_usd is None else micro_usd / 1_000_000,
    )


def _sum(counts: Iterable[int | None]) -> int | None:
    listed = list(counts)
    known = [count for count in listed if count is not None]
    return sum(known) if len(known) == len(listed) else None


def _files(context: Context, result: Result) -> dict[str, bytes]:
    files = {}
    if result.patch:
        files["patch.diff"] = result.patch.read_bytes()
    if result.experiment:
        files["config.yaml"] = result.experiment.read_bytes()
    for fit in result.fits:
        files[f"curve{fit.mark}.tsv"] = evidence.curve(context.root, fit.checkpoint)
    return files
