"""The leaderboard as a table, by canonical test; what has no number comes last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from eop.leaderboard.anchors import read_anchors
from eop.leaderboard.files import read_entries
from eop.leaderboard.ranking import metric, ranked
from eop.leaderboard.selection import Selection, recorded
from eop.leaderboard.standing import standing, stands_on

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from eop.leaderboard.anchors import Anchor
    from eop.leaderboard.entry import Entry

_NUMBERS = (
    "test_ndcg@10",
    "test_low",
    "test_high",
    "test_hr@10",
    "test_mrr",
    "validation_ndcg@10",
    "validation_low",
    "validation_high",
    "delta",
    "delta_low",
    "delta_high",
    "on_test",
    "on_test_low",
    "on_test_high",
    "p_adjusted",
    "detectable",
    "over_base",
    "over_anchor",
    "wall_s",
    "train_s",
    "usd",
)


def rows(root: Path, selection: Selection | None = None) -> pd.DataFrame:
    """One row per entry selected, split by split.

    Within a split the best canonical test NDCG@10 comes first, and rows without one last; rows of
    different splits (columns ``dataset``, ``split``) follow each other and are no ranking.

    Number columns are nullable floats: what was not measured is ``<NA>``, never 0. ``_low`` and
    ``_high`` are the ends of 95 % intervals: of mean NDCG@10 on either target, and of ``delta`` and
    ``on_test``, NDCG@10 against the parent, the champion of its time, on validation and on the
    test. ``over_base`` and ``over_anchor`` are differences of test NDCG@10 to the run's base and to
    the first published anchor of the data set. ``stands_on`` are the rows whose
    changes are in this one. All numbers are canonical: a subset's are of another type, which
    entries and ranks refuse.
    """
    entries = {entry.id: entry for entry in read_entries(root)}
    anchors = read_anchors(root)
    chosen = (selection or Selection()).of(entries.values())
    records = [_record(entry, entries, anchors) for entry in ranked(chosen)]
    frame = pd.DataFrame.from_records(records, columns=list(_record_columns()))
    types = dict.fromkeys(_NUMBERS, "Float64") | {
        "iteration": "Int64",
        "actions": "Int64",
        "tokens": "Int64",
        "seeds": "Int64",
        "test_reads": "Int64",
        "promoted": "boolean",
    }
    return frame.astype(types)


def _record_columns() -> tuple[str, ...]:
    origin = ("dataset", "split", "entry", "kind", "run", "iteration", "title", "parent")
    measured = ("outcome", "standing", "promoted", *_NUMBERS, "seeds", "test_reads")
    return (*origin, *measured, "actions", "tokens", "reproducible", "stands_on", "recorded")


def _record(
    entry: Entry, entries: Mapping[str, Entry], anchors: Mapping[str, Sequence[Anchor]]
) -> dict[str, Any]:
    decision = entry.decision
    dataset = entry.evidence["split"]["dataset"]
    base = next((e for e in entries.values() if (e.run, e.kind) == (entry.run, "base")), None)
    anchor = next(iter(anchors.get(dataset, ())), None)
    at = recorded(entry)
    compared = entry.on_test
    return {
        "dataset": dataset,
        "split": entry.evidence["split"]["digest"],
        "entry": entry.id,
        "kind": entry.kind,
        "run": entry.run,
        "iteration": entry.iteration,
        "title": entry.proposal.title,
        "parent": entry.parent,
        "outcome": entry.outcome,
        "standing": standing(entry),
        "promoted": decision.promoted if decision else None,
        "test_ndcg@10": metric(entry.test, "ndcg@10"),
        **_ends("test", entry.test.interval if entry.test else None),
        "test_hr@10": metric(entry.test, "hr@10"),
        "test_mrr": metric(entry.test, "mrr"),
        "validation_ndcg@10": metric(entry.validation, "ndcg@10"),
        **_ends("validation", entry.validation.interval if entry.validation else None),
        "delta": decision.delta if decision else None,
        **_ends("delta", decision.interval if decision else None),
        "on_test": compared.delta if compared else None,
        **_ends("on_test", compared.interval if compared else None),
        "p_adjusted": decision.p_adjusted if decision else None,
        "detectable": decision.detectable if decision else None,
        "over_base": _over(entry, metric(base.test, "ndcg@10") if base else None),
        "over_anchor": _over(entry, anchor.ndcg if anchor else None),
        "seeds": len(entry.test.seeds) if entry.test else None,
        "test_reads": entry.test_reads,
        "wall_s": entry.cost.wall_s,
        "train_s": entry.cost.train_s,
        "usd": entry.cost.usd,
        "actions": entry.cost.actions,
        "tokens": entry.cost.tokens,
        "reproducible": entry.reproducible,
        "stands_on": stands_on(entry, entries),
        "recorded": at.isoformat() if at else None,
    }


def _ends(name: str, interval: tuple[float, float] | None) -> dict[str, float | None]:
    low, high = interval or (None, None)
    return {f"{name}_low": low, f"{name}_high": high}


def _over(entry: Entry, other: float | None) -> float | None:
    """The test NDCG@10 of a row less another's; ``None`` when one is missing."""
    own = metric(entry.test, "ndcg@10")
    return None if own is None or other is None else own - other
