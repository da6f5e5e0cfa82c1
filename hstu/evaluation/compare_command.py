"""``hstu compare``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hstu.evaluation.compare import Comparison, DecileRow, compare, compare_by_decile
from hstu.evaluation.deciles import target_deciles
from hstu.evaluation.rank_files import read_canonical_ranks, read_subset_ranks
from hstu.evaluation.show import interval, number, show, show_json, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from hstu.evaluation.compare import Ranks

_PLACE = click.Path(path_type=Path)


@click.command("compare")
@click.argument("evaluations", type=_PLACE, nargs=-1, metavar="[BASE CANDIDATE]")
@click.option("--base", "bases", type=_PLACE, multiple=True, help="A seed of the base; repeat it.")
@click.option(
    "--candidate", "candidates", type=_PLACE, multiple=True, help="A seed of the candidate."
)
@click.option("--metric", default="ndcg@10", show_default=True, help="Such as hr@50 or mrr.")
@click.option(
    "--split",
    type=click.Path(path_type=Path, file_okay=False),
    help="The split: adds a row for each popularity decile of the target item.",
)
@click.option("--subset", is_flag=True, help="Compare subset evaluations of the same users.")
@click.option("--json", "as_json", is_flag=True, help="JSON instead of tables.")
def compare_command(
    evaluations: tuple[Path, ...],
    bases: tuple[Path, ...],
    candidates: tuple[Path, ...],
    metric: str,
    split: Path | None,
    subset: bool,
    as_json: bool,
) -> None:
    """Compare two models user by user, by the ranks that their evaluations left.

    BASE and CANDIDATE are folders that `hstu evaluate` left, or their rank files; for several
    seeds use --base and --candidate. Other splits, targets or users are refused.

    Example: hstu compare evaluation/base evaluation/candidate --metric ndcg@10
    """
    if evaluations and (bases or candidates):
        raise click.UsageError("name the two as arguments, or by --base and --candidate")
    if evaluations:
        if len(evaluations) != 2:
            raise click.UsageError("two evaluations: BASE and CANDIDATE")
        bases, candidates = evaluations[:1], evaluations[1:]
    if not bases or not candidates:
        raise click.UsageError("two evaluations: BASE CANDIDATE, or --base and --candidate")
    for side in (bases, candidates):
        if len({path.resolve() for path in side}) != len(side):
            raise click.UsageError("an evaluation is named twice on one side: it is one seed")
    if subset:
        left, right = ([read_subset_ranks(path) for path in side] for side in (bases, candidates))
        found, rows = _compare(left, right, metric, split)
    else:
        base, candidate = (
            [read_canonical_ranks(path) for path in side] for side in (bases, candidates)
        )
        found, rows = _compare(base, candidate, metric, split)
    if as_json:
        more = {} if rows is None else {"deciles": [asdict(row) for row in rows]}
        show_json({"schema": "hstu.comparison/1", **found.to_json(), **more})
    else:
        _show(found, rows)


def _compare(
    base: Sequence[Ranks], candidate: Sequence[Ranks], metric: str, split: Path | None
) -> tuple[Comparison, list[DecileRow] | None]:
    comparison = compare(base, candidate, metric)
    if split is None:
        return comparison, None
    deciles = target_deciles(split, base[0].target)
    return comparison, compare_by_decile(base, candidate, deciles, metric)


def _show(found: Comparison, rows: list[DecileRow] | None) -> None:
    columns = ("", "users", "base", "candidate", "difference", "95 % interval")
    title = (
        f"{found.kind} {found.metric} on {found.target}, seeds {found.seeds[0]}:{found.seeds[1]}"
    )
    cells = [("all", *_cells(found)), *((str(row.decile), *_cells(row)) for row in rows or [])]
    noise = f"users {found.user_error:.4f}, seeds {number(found.seed_error)}"
    parts: list[Table | str] = [table(title, columns, cells)]
    parts.append(f"{found.verdict} (standard errors: {noise})")
    if found.seed_error is None:
        parts.append("One seed on each side: the noise of training is not in the interval.")
    if rows is not None:
        parts.append("Deciles: training popularity of the target item, 10 is the most popular.")
    show(*parts)


def _cells(row: Comparison | DecileRow) -> tuple[str, ...]:
    values = number(row.base), number(row.candidate), number(row.difference, "+.4f")
    return (str(row.users), *values, interval(row.low, row.high))
