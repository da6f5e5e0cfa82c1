"""The alarm for preference training: the pairs are won and the ranking is lost.

Preference accuracy, the share of pairs whose wanted item scores above the rejected one, can go to
1 while the ranking of the corpus falls apart. It is over-optimised when the accuracy rose and
NDCG@10 fell by more than one percent of what it was.
"""

from __future__ import annotations

import csv
import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from hstu.data.errors import HstuError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from hstu.evaluation.results import CanonicalResult

METRIC = "ndcg@10"
TOLERATED_LOSS = 0.01
COLUMN = "preference_accuracy"
_CHANCE = 0.5


@dataclass(frozen=True, kw_only=True)
class PreferenceReport:
    """``accuracy_before`` is that of the first epoch, or chance where there is one epoch only.

    ``relative_change`` of NDCG@10 is a share: -0.01 is one percent less.
    """

    target: str
    split: str
    accuracy_before: float
    accuracy_after: float
    metric_before: float
    metric_after: float
    relative_change: float
    over_optimised: bool

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"schema": "hstu.preference/1", "metric": METRIC, **asdict(self)}


def read_accuracies(path: Path) -> list[float]:
    """Preference accuracies by epoch, from a tab-separated file with ``preference_accuracy``."""
    try:
        with path.open(newline="") as stream:
            rows = list(csv.DictReader(stream, delimiter="\t"))
        values = [float(row[COLUMN]) for row in rows]
    except FileNotFoundError:
        raise HstuError("file is missing", where=str(path)) from None
    except KeyError:
        raise HstuError(
            f"there is no column {COLUMN}",
            where=str(path),
            hint="name the curve.tsv of a training on preferences",
        ) from None
    except (ValueError, TypeError) as error:
        raise HstuError(f"column {COLUMN} is no number: {error}", where=str(path)) from error
    if not values or not all(0 <= value <= 1 for value in values):
        raise HstuError(f"column {COLUMN} must hold shares from 0 to 1", where=str(path))
    return values


def preference_alarm(
    accuracies: Sequence[float], before: CanonicalResult, after: CanonicalResult
) -> PreferenceReport:
    """Judge a training by its pairs' accuracies (by epoch) and the evaluations around it."""
    for name in ("target", "split", "users", "corpus"):
        if getattr(before, name) != getattr(after, name):
            raise HstuError(
                f"the evaluations differ in {name}: {getattr(before, name)} and "
                f"{getattr(after, name)}",
                hint="evaluate both checkpoints on the same split and target",
            )
    old, new = before.metrics.get(METRIC), after.metrics.get(METRIC)
    if old is None or new is None or not math.isfinite(new) or old <= 0:
        raise HstuError(f"{METRIC} before is {old}, after {new}: nothing can be said of a loss")
    first = accuracies[0] if len(accuracies) > 1 else _CHANCE
    change = new / old - 1
    return PreferenceReport(
        target=before.target,
        split=before.split,
        accuracy_before=first,
        accuracy_after=accuracies[-1],
        metric_before=old,
        metric_after=new,
        relative_change=change,
        over_optimised=accuracies[-1] > first and change < -TOLERATED_LOSS,
    )
