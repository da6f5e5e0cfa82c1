"""``hstu diagnose``: what kind of mistakes a model makes. Counts and means only, never metrics."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from hstu.evaluation.deciles import popularity_report, target_deciles
from hstu.evaluation.evaluator import Worker
from hstu.evaluation.genres import TOP, GenreReport, measure_genres
from hstu.evaluation.overlap import Overlap, OverlapReport, measure_overlap
from hstu.evaluation.preference import PreferenceReport, preference_alarm, read_accuracies
from hstu.evaluation.rank_files import read_canonical_ranks
from hstu.evaluation.results import read_canonical
from hstu.evaluation.show import interval, number, show, show_json, table
from hstu.evaluation.task import read_task

if TYPE_CHECKING:
    from hstu.data.split import Target
    from hstu.evaluation.deciles import PopularityRow
    from hstu.evaluation.intervals import Interval

_FOLDER = click.Path(path_type=Path, file_okay=False)
_PLACE = click.Path(path_type=Path)
_REPORTED = ("ndcg@10", "hr@10", "mrr")

_json = click.option("--json", "as_json", is_flag=True, help="JSON instead of tables.")
_split = click.option("--split", type=_FOLDER, required=True, help="Folder of the split.")
_target = click.option(
    "--target",
    type=click.Choice(["validation", "test"]),
    default="validation",
    show_default=True,
    help="Which held-out event; a read of the test is counted.",
)
_checkpoint = click.option("--checkpoint", type=_FOLDER, required=True, help="What train left.")
_timeout = click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=3600.0,
    show_default=True,
    help="Seconds that one pass over the users may take.",
)


@click.group("diagnose")
def diagnose_commands() -> None:
    """Look into the mistakes of a model; nothing here may select one."""


@diagnose_commands.command("overlap")
@_split
@_target
@_checkpoint
@click.option(
    "--step",
    "steps",
    type=click.IntRange(min=1),
    multiple=True,
    default=(1, 2, 3),
    show_default=True,
    help="An event so many before the target; repeat it.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Of the bootstrap.")
@_timeout
@_json
def overlap_command(
    split: Path,
    target: str,
    checkpoint: Path,
    steps: tuple[int, ...],
    seed: int,
    timeout: float,
    as_json: bool,
) -> None:
    """Count users who are missed at the target and at earlier events too, beside chance.

    Example: hstu diagnose overlap --split data/splits/synthetic --checkpoint model
    """
    task = read_task(split, cast("Target", target))
    report = measure_overlap(task, checkpoint, _worker(timeout), steps, seed=seed)
    if as_json:
        show_json(report.to_json())
    else:
        _show_overlap(report)
    _say_reads(checkpoint, report.test_reads)


@diagnose_commands.command("genres")
@_split
@_target
@_checkpoint
@click.option(
    "--top",
    type=click.IntRange(min=1),
    default=TOP,
    show_default=True,
    help="Best items looked at.",
)
@_timeout
@_json
def genres_command(
    split: Path, target: str, checkpoint: Path, top: int, timeout: float, as_json: bool
) -> None:
    """Compare the genres of items wrongly ranked above the target with those of random items.

    Example: hstu diagnose genres --split data/splits/synthetic --checkpoint model
    """
    task = read_task(split, cast("Target", target))
    report = measure_genres(task, checkpoint, _worker(timeout), top)
    if as_json:
        show_json(report.to_json())
    else:
        _show_genres(report)
    _say_reads(checkpoint, report.test_reads)


@diagnose_commands.command("popularity")
@_split
@click.option(
    "--metric", "metrics", multiple=True, default=_REPORTED, show_default=True, help="Repeat it."
)
@click.argument("evaluations", type=_PLACE, nargs=-1, required=True)
@_json
def popularity_command(
    split: Path, metrics: tuple[str, ...], evaluations: tuple[Path, ...], as_json: bool
) -> None:
    """Split a model's metrics by how popular the target item is.

    EVALUATIONS are folders that `hstu evaluate` left, or their rank files, one a seed.

    Example: hstu diagnose popularity --split data/splits/synthetic evaluation
    """
    seeds = [read_canonical_ranks(path) for path in evaluations]
    rows = popularity_report(seeds, target_deciles(split, seeds[0].target), metrics)
    if as_json:
        deciles = [
            {**asdict(row), "metrics": {k: v._asdict() for k, v in row.metrics.items()}}
            for row in rows
        ]
        facts = {"schema": "hstu.popularity/1", "target": seeds[0].target, "seeds": len(seeds)}
        show_json({**facts, "split": seeds[0].split, "deciles": deciles})
    else:
        _show_popularity(rows, metrics)


@diagnose_commands.command("preference")
@click.option(
    "--log",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="Tab-separated, a row an epoch, with a column preference_accuracy.",
)
@click.option("--before", type=_PLACE, required=True, help="Evaluation before the training.")
@click.option("--after", type=_PLACE, required=True, help="Evaluation after it.")
@click.option("--strict", is_flag=True, help="End with status 1 when over-optimised.")
@_json
def preference_command(log: Path, before: Path, after: Path, strict: bool, as_json: bool) -> None:
    """Sound the alarm when pairs are won and the ranking is lost.

    Example: hstu diagnose preference --log dpo/curve.tsv --before evaluation/base
    --after evaluation/dpo --strict
    """
    evaluations = read_canonical(before), read_canonical(after)
    report = preference_alarm(read_accuracies(log), *evaluations)
    if as_json:
        show_json(report.to_json())
    else:
        _show_preference(report)
    if strict and report.over_optimised:
        sys.exit(1)


def _worker(timeout: float) -> Worker:
    return Worker((sys.executable,), None, timeout)


def _say_reads(checkpoint: Path, reads: int | None) -> None:
    if reads is not None:
        click.echo(f"{checkpoint}: test target read {reads} time(s) for this checkpoint", err=True)


def _show_overlap(report: OverlapReport) -> None:
    columns = ("steps back", "missed", "overlap", "95 %", "lift", "95 %")
    title = f"missed beyond rank {report.cutoff}, {report.users} users, target {report.target}"
    failed = report.overlaps[0].target_failed
    parts = [table(title, columns, map(_overlap_row, report.overlaps))]
    lines = [
        f"target missed: {failed} of {report.users}; overlap: of these, missed at the step too",
        f"left out, too short a history: {report.too_short}",
        "lift: overlap over the share of all users missed there; 1 is no relation at all",
        *(f"step {step}: {label}" for step, label in report.labels.items()),
    ]
    if len(union := report.overlaps[-1].steps) > 1:
        chance = number(report.overlaps[-1].independent, ".3f")
        lines.append(f"any of {len(union)} independent steps would be missed by {chance}")
    lines.append("A diagnosis of a frozen model: no metric, and no reason to choose one.")
    show(*parts, *lines)


def _overlap_row(row: Overlap) -> tuple[str, ...]:
    within, lifts = (
        interval(*(pair or (None, None)), form=".3f")
        for pair in (row.overlap_interval, row.lift_interval)
    )
    name = " or ".join(map(str, row.steps))
    shares = [number(value, ".3f") for value in (row.base_rate, row.overlap, row.lift)]
    return (name, shares[0], shares[1], within, shares[2], lifts)


def _show_genres(report: GenreReport) -> None:
    columns = ("Jaccard of genres", "mean")
    rows = [
        (f"rejects of the best {report.top} with the target", number(report.rejects)),
        ("all unseen items with the target", number(report.random)),
        ("difference", number(report.difference, "+.4f")),
        ("95 %", interval(report.low, report.high)),
    ]
    title = f"{report.users} users, target {report.target}"
    none = f"left out, no rejects or no genres: {report.others}"
    show(table(title, columns, rows), none)


def _show_popularity(rows: list[PopularityRow], metrics: tuple[str, ...]) -> None:
    columns = ["decile", "items", "users", *metrics]
    cells = []
    for row in rows:
        numbers = [str(row.decile), str(row.items), str(row.users)]
        cells.append([*numbers, *map(_with_error, row.metrics.values())])
    note = "Deciles of items by training popularity, 10 is the most popular; ± is about 95 %."
    show(table("by popularity of the target item", columns, cells), note)


def _with_error(found: Interval) -> str:
    reach = None if found.mean is None or found.high is None else found.high - found.mean
    return f"{number(found.mean)} ± {number(reach)}"


def _show_preference(report: PreferenceReport) -> None:
    rows = [
        ("preference accuracy", number(report.accuracy_before), number(report.accuracy_after)),
        ("NDCG@10", number(report.metric_before), number(report.metric_after)),
    ]
    share = f"NDCG@10 changed by {report.relative_change:+.2%}"
    verdict = "over-optimised: stop" if report.over_optimised else "no alarm"
    show(table(f"target {report.target}", ("", "before", "after"), rows), f"{share}: {verdict}")
