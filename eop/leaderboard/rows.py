"""The leaderboard as a table, by canonical test; what has no number comes last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from eop.leaderboard.files import read_entries

if TYPE_CHECKING:
    from pathlib import Path

    from eop.leaderboard.entry import Entry, Scores

_NUMBERS = (
    "test_ndcg@10",
    "test_hr@10",
    "test_mrr",
    "validation_ndcg@10",
    "delta",
    "low",
    "high",
    "wall_s",
    "train_s",
)


def rows(root: Path) -> pd.DataFrame:
    """One row per entry, best canonical test NDCG@10 first; rows without one follow, by id.

    Number columns are nullable floats: what was not measured is ``<NA>``, never 0. ``delta``,
    ``low`` and ``high`` are NDCG@10 against the parent on validation with its 95 % interval.
    """
    records = [_record(entry) for entry in sorted(read_entries(root), key=_rank)]
    frame = pd.DataFrame.from_records(records, columns=list(_record_columns()))
    types = dict.fromkeys(_NUMBERS, "Float64") | {"actions": "Int64", "promoted": "boolean"}
    return frame.astype(types)


def _rank(entry: Entry) -> tuple[bool, float, str]:
    score = entry.test.mean["ndcg@10"] if entry.test else None
    return (score is None, -(score or 0.0), entry.id)


def _record_columns() -> tuple[str, ...]:
    text = ("entry", "kind", "run", "iteration", "title", "parent", "outcome", "promoted")
    return (*text, *_NUMBERS, "actions", "reproducible")


def _record(entry: Entry) -> dict[str, Any]:
    decision = entry.decision
    interval = (decision.interval if decision else None) or (None, None)
    return {
        "entry": entry.id,
        "kind": entry.kind,
        "run": entry.run,
        "iteration": entry.iteration,
        "title": entry.proposal.title,
        "parent": entry.parent,
        "outcome": entry.outcome,
        "promoted": decision.promoted if decision else None,
        "test_ndcg@10": _metric(entry.test, "ndcg@10"),
        "test_hr@10": _metric(entry.test, "hr@10"),
        "test_mrr": _metric(entry.test, "mrr"),
        "validation_ndcg@10": _metric(entry.validation, "ndcg@10"),
        "delta": decision.delta if decision else None,
        "low": interval[0],
        "high": interval[1],
        "wall_s": entry.cost.wall_s,
        "train_s": entry.cost.train_s,
        "actions": entry.cost.actions,
        "reproducible": entry.reproducible,
    }


def _metric(scores: Scores | None, name: str) -> float | None:
    return scores.mean[name] if scores else None
