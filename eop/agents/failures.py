"""Which error class a product's complaint belongs to, by HTTP status and by its sentences."""

from __future__ import annotations

import re
from dataclasses import dataclass

from eop.agents.contract import Source, Status

# What the metering gateway answers when a call would pass a cap.
BUDGET_REFUSAL = "run budget exhausted"


@dataclass(frozen=True)
class Failure:
    """A classified complaint; ``status`` is ``None`` when nothing in it is known."""

    status: Status | None
    detail: str
    http_status: int | None = None
    source: Source = Source.PRODUCT


_STATUS_IN_TEXT = re.compile(
    r"(?:status(?: code)?|API Error|Error code|HTTP)\W{0,3}(?:rejected )?\(?(?P<status>[45]\d\d)\b",
    re.IGNORECASE,
)
_REJECTED = re.compile(r"rejected \((?P<status>[45]\d\d)\)", re.IGNORECASE)


def _table(*rows: tuple[Status, str]) -> tuple[tuple[Status, re.Pattern[str]], ...]:
    return tuple((status, re.compile(pattern, re.IGNORECASE)) for status, pattern in rows)


# These say more than the status they come with: a 400 may be a full context, a 429 a spent quota.
_BEFORE_STATUS = _table(
    (
        Status.CONTEXT_OVERFLOW,
        r"prompt is too long|context[ _]?(?:window|length|limit)|maximum context|ran out of room",
    ),
    (
        Status.QUOTA_EXHAUSTED,
        r"quota|usage limit|credit balance|billing|spend(?:ing)? limit|out of credits"
        r"|payment.?required|insufficient[ _](?:balance|funds|credits)"
        r"|(?:hour|session|daily|weekly) limit reached|hit your .{0,20}limit|upgrade to \w+",
    ),
    (
        Status.REFUSED,
        r"(?:usage|content)[ _]polic(?:y|ies)|content[ _]filter|model_refusal"
        r"|flagged (?:as|for) ",
    ),
)
_AFTER_STATUS = _table(
    (
        Status.TRANSIENT_ERROR,
        r"overloaded|at capacity|high demand|rate.?limit|too many requests|time(?:d )?.?out"
        r"|econn|connection|network error|error sending request|stream disconnected"
        r"|(?:server|internal|service).?(?:had an )?(?:error|unavailable)|bad gateway"
        r"|socket hang up|fetch failed|broken pipe|unexpected eof|malformed response"
        r"|other side closed|unable to connect|enotfound|eai_again|epipe|name resolution"
        r"|request was aborted",
    ),
    (
        Status.AUTH_ERROR,
        r"authenticat|unauthori[sz]ed|api[ _-]?key|not logged in|forbidden|permission_error"
        r"|missing environment variable|access token|sign in again",
    ),
    (
        Status.CONFIG_ERROR,
        r"^model: |model_not_found|not[ _]?found|does not exist|no such|invalid[ _]request"
        r"|bad ?request|unsupported|selected model",
    ),
)


def classify(detail: str, http_status: int | None = None) -> Failure:
    """The error class of a complaint, from the most to the least telling sign in it."""
    if BUDGET_REFUSAL in detail:
        return Failure(Status.BUDGET_EXHAUSTED, detail, http_status, Source.GATEWAY)
    http_status = http_status or _status_in(detail)
    status = _first(_BEFORE_STATUS, detail) or _of_http(http_status)
    return Failure(status or _first(_AFTER_STATUS, detail), detail, http_status)


def _of_http(status: int | None) -> Status | None:
    match status:
        case None:
            return None
        case 401 | 403:
            return Status.AUTH_ERROR
        case 402:
            return Status.QUOTA_EXHAUSTED
        case 413:
            return Status.CONTEXT_OVERFLOW
        case 408 | 409 | 425 | 429:
            return Status.TRANSIENT_ERROR
    if status >= 500:
        return Status.TRANSIENT_ERROR
    return Status.CONFIG_ERROR if status >= 400 else None


def _status_in(detail: str) -> int | None:
    match = _STATUS_IN_TEXT.search(detail) or _REJECTED.search(detail)
    return int(match["status"]) if match else None


def _first(table: tuple[tuple[Status, re.Pattern[str]], ...], detail: str) -> Status | None:
    return next((status for status, pattern in table if pattern.search(detail)), None)
