"""How the page says what it is given: numbers, names and times as people read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eop.report.progress import duration
from eop.report.spending import SPENT
from eop.report.terminal import MISSING, counted, number

if TYPE_CHECKING:
    from collections.abc import Callable

    from eop.leaderboard import Scores
    from eop.report.spending import Spend

_KINDS = {
    "completed": "good",
    "better": "calm",
    "open": "calm",
    "at work": "calm",
    "may go on": "warn",
    "promoted": "good",
    "approved": "good",
    "passed": "good",
    "resolved": "good",
    "requested": "warn",
    "within_noise": "warn",
    "waits for a person": "warn",
    "paused": "warn",
    "fix": "warn",
    "minor": "warn",
    "reference": "",
    "waiting": "",
    "skipped": "",
    "cut_off": "",
    "not_compared": "",
    "info": "",
}


def kind(status: str) -> str:
    """The class of a status; what is not known to be anything else is bad."""
    return _KINDS.get(status, "bad")


def word(name: str) -> str:
    """A name without its underscores."""
    return name.replace("_", " ")


def signed(value: float | None) -> str:
    """Four decimals and the sign, or a dash."""
    return number(value, signed=True)


def interval(ends: tuple[float, float] | None) -> str:
    """The ends of an interval with four decimals, or nothing where none was recorded."""
    return f"[{ends[0]:.4f}, {ends[1]:.4f}]" if ends else ""


def metric(scores: Scores | None, name: str) -> float | None:
    """The mean over seeds of a metric; ``None`` when it was not measured."""
    return None if scores is None else scores.mean[name]


def count(value: float | None) -> str:
    """A whole number with commas, or that nobody measured it."""
    return "not measured" if value is None else f"{value:,.0f}"


def dollars(value: float | None) -> str:
    """An amount with cents, or that nobody measured it."""
    return "not measured" if value is None else f"{value:,.2f}"


def seconds(value: float | None) -> str:
    """A duration, or a dash for what nobody measured."""
    return MISSING if value is None else duration(value)


def minute(when: str) -> str:
    """An event's time (ISO 8601, UTC) to the minute."""
    return f"{when[:10]} {when[11:16]} UTC" if when else ""


def spent(spend: Spend) -> tuple[str, str]:
    """A unit of the budget: what was spent, and of what it is and how much there is."""
    name = SPENT[spend.unit]
    limit = "no limit" if spend.limit is None else f"of {spend.limit:,.10g}"
    unknown = f", {counted(spend.unknown, 'attempt')} not metered" if spend.unknown else ""
    if spend.spent is None:
        return "unknown", f"{name}, {limit}{unknown}"
    least = "\N{GREATER-THAN OR EQUAL TO} " if spend.unknown else ""
    amount = f"{spend.spent:,.2f}" if spend.unit == "usd" else f"{spend.spent:,.0f}"
    return f"{least}{amount}", f"{name}, {limit}{unknown}"


FILTERS: dict[str, Callable[..., Any]] = {
    "kind": kind,
    "word": word,
    "number": number,
    "signed": signed,
    "interval": interval,
    "metric": metric,
    "counted": counted,
    "count_of": count,
    "dollars": dollars,
    "seconds": seconds,
    "minute": minute,
    "spent": spent,
}
