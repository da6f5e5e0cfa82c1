"""``hstu evaluate``, ``hstu popularity`` and ``hstu worker``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from hstu.data.errors import ExitCode, HstuError
from hstu.evaluation import evaluator
from hstu.evaluation.popularity import popularity_chunks
from hstu.evaluation.record import record
from hstu.evaluation.stream import reserved_stdout
from hstu.evaluation.task import read_task, read_users, sampled, selected

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hstu.data.split import Target
    from hstu.evaluation.results import CanonicalResult, SubsetResult

_FOLDER = click.Path(path_type=Path, file_okay=False)
_FILE = click.Path(path_type=Path, dir_okay=False)
_TARGETS = click.Choice(["validation", "test"])


@click.command("evaluate")
@click.option("--split", type=_FOLDER, required=True, help="Folder of the split.")
@click.option("--target", type=_TARGETS, required=True, help="Which held-out event to rank.")
@click.option(
    "--checkpoint",
    "checkpoints",
    type=_FOLDER,
    multiple=True,
    required=True,
    help="Folder that train left; may be repeated, all of one tree.",
)
@click.option(
    "--worker",
    "worker_json",
    help="JSON list: the command that the worker is started with, ending with a Python "
    "[default: this Python].",
)
@click.option(
    "--worker-pythonpath", help="PYTHONPATH of the worker [default: that of this process]."
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=3600.0,
    show_default=True,
    help="Seconds that the worker may take.",
)
@click.option(
    "--threads", type=click.IntRange(1, 256), help="CPU threads of the worker [default: torch's]."
)
@click.option("--device", help="Where the worker scores: auto, cpu, cuda or cuda:N [default: cpu].")
@click.option(
    "--users",
    "count",
    type=click.IntRange(min=1),
    help="Rank for so many users only: a subset, which is never compared with the canonical.",
)
@click.option(
    "--sample-seed",
    type=click.IntRange(min=0),
    help="Which users --users takes  [default: 0].",
)
@click.option(
    "--users-file", type=_FILE, help="Rank for the users of this file only, one id a line."
)
@click.option(
    "--out",
    "outs",
    type=_FOLDER,
    multiple=True,
    required=True,
    help="Folder for metrics.json and ranks.parquet, one for each --checkpoint; a subset's are "
    "subset-metrics.json and subset-ranks.parquet.",
)
def evaluate(
    split: Path,
    target: str,
    checkpoints: tuple[Path, ...],
    worker_json: str | None,
    worker_pythonpath: str | None,
    timeout: float,
    threads: int | None,
    device: str | None,
    count: int | None,
    sample_seed: int | None,
    users_file: Path | None,
    outs: tuple[Path, ...],
) -> None:
    """Judge a checkpoint: all users, the full corpus, a worker that never sees the targets.

    A read of the test target is recorded in the checkpoint's test_reads.jsonl.

    Example: hstu evaluate --split data/splits/synthetic --target validation --checkpoint model
    --out evaluation
    """
    if len(set(checkpoints)) != len(set(outs)) or len(checkpoints) != len(outs):
        raise click.UsageError("give one --out of its own for each --checkpoint")
    command = _command(worker_json) if worker_json is not None else (sys.executable,)
    if (count and users_file) or (sample_seed is not None and not count):
        raise click.UsageError("name users by --users N [--sample-seed S], or by --users-file")
    task = read_task(split, cast("Target", target))
    worker = evaluator.Worker(command, worker_pythonpath, timeout, _options(threads, device))
    pairs = dict(zip(checkpoints, outs, strict=True))
    if count:
        subset = sampled(task, count, sample_seed or 0)
    elif users_file:
        subset = selected(task, read_users(users_file))
    else:
        _report(checkpoints, evaluator.evaluate(task, pairs, worker))
        return
    _report(checkpoints, evaluator.evaluate_subset(subset, pairs, worker))


@click.command("popularity")
@click.option("--split", type=_FOLDER, required=True, help="Folder of the split.")
@click.option("--target", type=_TARGETS, required=True, help="Which held-out event to rank.")
@click.option("--out", type=_FOLDER, required=True, help="Folder for metrics.json, ranks.parquet.")
def popularity(split: Path, target: str, out: Path) -> None:
    """Judge the popularity baseline with the same rules.

    Example: hstu popularity --split data/splits/ml-100k --target test --out popularity
    """
    task = read_task(split, cast("Target", target))
    questions = task.questions
    rank = questions.ranks(popularity_chunks(questions))
    click.echo(json.dumps(record(task, rank, out, test_reads=None).to_json(), sort_keys=True))


@click.command("worker")
@click.option("--checkpoint", "checkpoints", type=_FOLDER, multiple=True, required=True)
@click.option("--items", "items_path", type=_FILE, required=True)
@click.option("--histories", "histories_path", type=_FILE, required=True)
@click.option("--chunk", type=click.IntRange(min=1), default=128, show_default=True)
@click.option("--threads", type=click.IntRange(1, 256))
@click.option("--device", default="cpu", show_default=True)
def worker(
    checkpoints: tuple[Path, ...], items_path: Path, histories_path: Path, **how: Any
) -> None:
    """Score histories on standard output; `hstu evaluate` starts this."""
    with reserved_stdout() as out:
        # Imported late: the judge shares this module and must not import torch, and the model's
        # modules may print.
        from hstu.evaluation.worker import work

        work(out, checkpoints, items_path, histories_path, **how)


def _options(threads: int | None, device: str | None) -> tuple[str, ...]:
    """What is not set is not said: a tree under judgement may know less than this one."""
    return (
        *(("--threads", str(threads)) if threads else ()),
        *(("--device", device) if device else ()),
    )


def _command(text: str) -> tuple[str, ...]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise HstuError(
            f"not JSON: {error}",
            where="--worker",
            hint="""a list of words, such as '["python"]'""",
            exit_code=ExitCode.USAGE,
        ) from error
    if not isinstance(value, list) or not value or not all(isinstance(word, str) for word in value):
        raise HstuError(
            "not a list of words",
            where="--worker",
            hint="""such as '["python"]'""",
            exit_code=ExitCode.USAGE,
        )
    return tuple(value)


def _report(checkpoints: Sequence[Path], results: Sequence[CanonicalResult | SubsetResult]) -> None:
    """Results on standard output, and how often the test has been read on standard error."""
    for checkpoint, result in zip(checkpoints, results, strict=True):
        click.echo(json.dumps(result.to_json(), sort_keys=True))
        if result.test_reads is not None:
            times = f"{result.test_reads} time{'s' if result.test_reads > 1 else ''}"
            click.echo(f"{checkpoint}: test target read {times} for this checkpoint", err=True)
