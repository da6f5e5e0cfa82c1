"""Where a row stands, in one word; negative ends are words of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eop.leaderboard.entry import Entry

REFERENCE = "reference"
PROMOTED = "promoted"
WITHIN_NOISE = "within_noise"
WORSE = "worse"
BETTER = "better"
NOT_COMPARED = "not_compared"
NEGATIVE = (
    "failed",
    "rejected_by_preflight",
    "tampered",
    "budget_exhausted",
    "timed_out",
    "blocked",
    "skipped",
    "cut_off",
)
STANDINGS = (REFERENCE, PROMOTED, BETTER, WITHIN_NOISE, WORSE, NOT_COMPARED, *NEGATIVE)


def standing(entry: Entry) -> str:
    """One of ``STANDINGS``: how it ended, and if it was judged, how it did against its parent.

    ``better`` is an interval above 0 that was not promoted: beaten by another, by too many tries
    at once, or by the noise band; the row's decision says which.
    """
    if entry.outcome != "completed":
        return entry.outcome
    if entry.kind != "candidate":
        return REFERENCE
    decision = entry.decision
    if decision is None or decision.interval is None:
        return NOT_COMPARED
    low, high = decision.interval
    if decision.promoted:
        return PROMOTED
    return BETTER if low > 0 else WORSE if high < 0 else WITHIN_NOISE


def stands_on(entry: Entry, entries: Mapping[str, Entry]) -> list[str]:
    """The rows whose changes are in this one, the base first; its own is not among them.

    A parent that is not in ``entries`` ends the chain: it is named, and nothing before it.
    """
    chain: list[str] = []
    parent = entry.parent
    while parent is not None and parent not in chain:
        chain.insert(0, parent)
        found = entries.get(parent)
        parent = found.parent if found else None
    return chain
