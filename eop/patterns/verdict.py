"""The rule that turns findings into a verdict: pure, and the same for every reviewer."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

SEVERITIES = ("info", "minor", "major", "critical")
REVIEW_FILE = "review.json"
OPEN, RESOLVED = "open", "resolved"

Finding = dict[str, Any]


class Verdict(StrEnum):
    """What follows from a review."""

    APPROVED = "approved"
    FIX = "fix"
    ROUNDS_SPENT = "rounds_spent"
    NOT_APPROVED = "not_approved"


def merge(ledger: Iterable[Finding], reported: Iterable[Finding]) -> list[Finding]:
    """All findings so far with their latest state, in order of first report.

    A finding stays open until a later review calls it resolved: silence closes nothing. Within one
    review an open report of an id outweighs a resolved one.
    """
    merged = {finding["id"]: finding for finding in ledger}
    news = list(reported)
    merged |= {finding["id"]: finding for finding in news if finding["status"] == RESOLVED}
    merged |= {finding["id"]: finding for finding in news if finding["status"] == OPEN}
    return list(merged.values())


def worst_open(findings: Iterable[Finding]) -> str | None:
    """The highest severity among open findings; ``None`` when none is open."""
    ranks = [SEVERITIES.index(f["severity"]) for f in findings if f["status"] == OPEN]
    return SEVERITIES[max(ranks)] if ranks else None


def judge(
    findings: Iterable[Finding], *, until: str, check_passed: bool | None, last_round: bool
) -> Verdict:
    """The verdict of a round.

    Approved when no open finding is worse than ``until`` and the check, if there is one, passed:
    no reviewer overrules it. In the last round an open critical finding or a failed check is
    ``not_approved``; anything milder goes on as ``rounds_spent``.
    """
    worst = worst_open(findings)
    tolerable = worst is None or SEVERITIES.index(worst) <= SEVERITIES.index(until)
    if tolerable and check_passed is not False:
        return Verdict.APPROVED
    if not last_round:
        return Verdict.FIX
    if worst == "critical" or check_passed is False:
        return Verdict.NOT_APPROVED
    return Verdict.ROUNDS_SPENT
