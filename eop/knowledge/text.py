"""A claim as an agent is told it, a note as a gate shows it, and what a text takes of a budget.

Made of claims and front matter alone: the numbers of the test, which stand in a note's body, are
not for agents.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eop.knowledge.effect import BETTER, FAILS, NOT_MEASURED, WITHIN_NOISE, WORSE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from eop.knowledge.facts import Facts
    from eop.knowledge.pages import Claim

_BYTES_PER_TOKEN = 3
_SETTINGS = 6
_WORDS = {
    BETTER: "better than its parent",
    WORSE: "worse than its parent",
    WITHIN_NOISE: "no difference beyond the noise",
    NOT_MEASURED: "not told from noise",
    FAILS: "came to no result",
}


def tokens(text: str) -> int:
    """An upper estimate of the tokens of a text: a token for every three bytes of UTF-8.

    English has about four bytes to a token; the products' own tokenizers differ and are not here.
    """
    return -(-len(text.encode()) // _BYTES_PER_TOKEN)


def claim_line(claim: Claim) -> str:
    """A claim in a line or two: what it says, when, and on what it rests; the lesson is quoted."""
    when = f" (when {conditions_text(claim.when)})" if claim.when else ""
    disputed = f"; disputed by {', '.join(claim.disputes)}" if claim.disputes else ""
    says = _line(claim.says).removesuffix(".")
    lesson = f"\n  > {_line(claim.lesson)}" if claim.lesson else ""
    return f"- {says}{when}. [{', '.join(claim.notes)}{disputed}]{lesson}"


def note_line(note: Facts) -> str:
    """A note in a line or two: what was tried and what it came to; the lesson is quoted."""
    effect = note.effect
    measured = "not measured"
    if effect.delta is not None:
        measured = f"{effect.delta:+.4f} {effect.metric.upper()}"
    if effect.delta is not None and effect.interval is not None:
        low, high = effect.interval
        measured += f", 95 % interval [{low:+.4f}, {high:+.4f}]"
    settings = [f"{key}: {after}" for key, (_, after) in note.change.settings.items()]
    if len(settings) > _SETTINGS:
        settings = [*settings[:_SETTINGS], f"and {len(settings) - _SETTINGS} more"]
    changed = "; ".join([*settings, *note.change.paths])
    parts = [
        f"- {_line(note.title)} ({note.id}): {note.outcome}, {measured}, {_WORDS[note.sign]}",
        *([f"on {note.conditions['dataset']}"] if "dataset" in note.conditions else []),
        *([f"changed {changed}"] if changed else []),
    ]
    lesson = f"\n  > {_line(note.lesson)}" if note.lesson else ""
    return "; ".join(parts) + lesson


def conditions_text(when: Mapping[str, Any]) -> str:
    """Flat conditions in words; empty where all is open."""
    return ", ".join(f"{key} is {_value(value)}" for key, value in when.items())


def _value(value: Any) -> str:
    if isinstance(value, dict) and value.keys() == {"any"}:
        return " or ".join(map(str, value["any"]))
    if isinstance(value, dict) and value and value.keys() <= {"min", "max"}:
        bounds = {"min": "at least", "max": "at most"}
        return " and ".join(f"{bounds[side]} {bound}" for side, bound in value.items())
    return str(value)


def _line(text: str) -> str:
    return " ".join(text.split())
