"""The order of the leaderboard, and who leads: the first by the test, the second never by it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eop.leaderboard.standing import PROMOTED, REFERENCE, standing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from eop.leaderboard.entry import Entry, Scores


def ranked(entries: Iterable[Entry]) -> list[Entry]:
    """Split by split; in each, best canonical test NDCG@10 first and those without one last."""
    return sorted(entries, key=_rank)


def leader(entries: Iterable[Entry]) -> Entry | None:
    """Of one split's entries the reference or promoted one that is best on validation.

    The test picks nobody, so that the leader's own test number is not the luckiest of many. An
    entry that was not promoted never leads, however well it did. Of equals the first by id.
    """
    scored = {entry.id: (metric(entry.validation, "ndcg@10"), entry) for entry in entries}
    may_lead = [
        (-score, name, entry)
        for name, (score, entry) in scored.items()
        if score is not None and standing(entry) in (REFERENCE, PROMOTED)
    ]
    return min(may_lead, key=lambda one: one[:2])[2] if may_lead else None


def split_of(entry: Entry) -> tuple[str, str]:
    """The data set and the digest of its split: only rows of one split are ranked together."""
    split = entry.evidence["split"]
    return split["dataset"], split["digest"]


def metric(scores: Scores | None, name: str) -> float | None:
    """The mean over seeds; ``None`` where nothing was measured."""
    return scores.mean[name] if scores else None


def _rank(entry: Entry) -> tuple[str, str, bool, float, str]:
    score = metric(entry.test, "ndcg@10")
    return (*split_of(entry), score is None, -(score or 0.0), entry.id)
