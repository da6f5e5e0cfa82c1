"""The leaderboard as a table, by canonical test; what has no number comes last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from eop.leaderboard.files import read_entries

if TYPE_CHECKING:
    from collections.abc import Iterable
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
    "usd",
)


def rows(root: Path) -> pd.DataFrame:
    """One row per entry; within a split best canonical test NDCG@10 first, rows without one last.

    Rows of different splits (columns ``dataset``, ``split``) follow each other and are no ranking.

    Number columns are nullable floats: what was not measured is ``<NA>``, never 0. ``delta``,
    ``low`` and ``high`` are NDCG@10 against the parent on validation with its 95 % interval.
    """
    records = [_record(entry) for entry in ranked(read_entries(root))]
    frame = pd.DataFrame.from_records(records, columns=list(_record_columns()))
    types = dict.fromkeys(_NUMBERS, "Float64") | {
        "actions": "Int64",
        "tokens": "Int64",
        "promoted": "boolean",
    }
    return frame.astype(types)


def ranked(entries: Iterable[Entry]) -> list[Entry]:
    """Split by split; in each, best canonical test NDCG@10 first and those without one last."""
    return sorted(entries, key=_rank)


def _rank(entry: Entry) -> tuple[str, str, bool, float, str]:
    split = entry.evidence["split"]
    score = _metric(entry.test, "ndcg@10")
    return (split["dataset"], split["digest"], score is None, -(score or 0.0), entry.id)


def _record_columns() -> tuple[str, ...]:
    origin = ("dataset", "split", "entry", "kind", "run", "iteration", "title", "parent")
    return (*origin, "outcome", "promoted", *_NUMBERS, "actions", "tokens", "reproducible")


def _record(entry: Entry) -> dict[str, Any]:
    decision = entry.decision
    interval = (decision.interval if decision else None) or (None, None)
    return {
        "dataset": entry.evidence["split"]["dataset"],
        "split": entry.evidence["split"]["digest"],
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
        "usd": entry.cost.usd,
        "actions": entry.cost.actions,
        "tokens": entry.cost.tokens,
        "reproducible": entry.reproducible,
    }


def _metric(scores: Scores | None, name: str) -> float | None:
    return scores.mean[name] if scores else None
