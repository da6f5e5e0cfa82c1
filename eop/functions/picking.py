"""Function ``pick``: which directions the next turn is told, in which order, by rule."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from eop.core.files import read_json, write_json
from eop.functions.screening import conditions_now
from eop.knowledge.entities import read_registry
from eop.knowledge.repeats import repeats
from eop.knowledge.store import open_store
from eop.protocol.signatures import DIRECTIONS, RANKING
from eop.runtime.gates import APPROVED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from eop.functions.context import Context

SCHEMA = "picked/1"
_KEEP = 3
_ORDER = re.compile(r"^[ \t]*order[ \t]*:(.*)$", re.MULTILINE | re.IGNORECASE)


def pick(context: Context) -> Path:
    """Choose among the directions of this iteration, as a person has ordered them or a critic.

    The person's order is the line ``order: 2, 1`` of the answer to a gate that showed them.
    """
    at = context.instance.iteration
    directions, ranking = (
        [item for path in context.artifacts.of_schema(name, at) for item in read_json(path)]
        for name in (DIRECTIONS, RANKING)
    )
    keep = context.phase.arguments.get("keep", _KEEP)
    found = picked(directions, ranking, _asked(context), _repeats(context, directions), keep=keep)
    report = context.work / "picked.json"
    write_json(report, found)
    return report


def picked(
    directions: Sequence[Mapping[str, Any]],
    ranking: Sequence[Mapping[str, Any]],
    asked: Sequence[str],
    repeated: Mapping[int, Sequence[str]],
    *,
    keep: int,
) -> dict[str, Any]:
    """The choice, as data of the schema ``picked``; directions are numbered from 1.

    What a person has ``asked`` for is taken as it stands, and what they left out is left. Otherwise
    the critic's order holds, what the critic has not ranked comes after it, and what repeats a
    recorded negative (``repeated``) last of all; the first ``keep`` are told.
    """
    known = {str(number): number for number in range(1, len(directions) + 1)}
    wanted = list(dict.fromkeys(known[word] for word in asked if word in known))
    ranked = [one["direction"] for one in ranking if str(one["direction"]) in known]
    order = list(dict.fromkeys([*ranked, *known.values()]))
    if wanted:
        by, told = "person", wanted
    else:
        by = "critic" if ranked else "writer"
        told = sorted(order, key=lambda number: number in repeated)[:keep]
    reasons = {one["direction"]: one["why"] for one in reversed(ranking)}
    items = {
        number: {
            "direction": number,
            "title": directions[number - 1]["title"],
            "why": directions[number - 1]["why"],
            "judged": reasons.get(number),
            "repeats": list(repeated.get(number, ())),
        }
        for number in order
    }
    return {
        "schema": SCHEMA,
        "order": by,
        "directions": [items[number] for number in told],
        "left": [items[number] for number in order if number not in told],
        "ignored": [word for word in asked if word not in known],
    }


def order_words(text: str) -> list[str]:
    """What an answer's line ``order: ...`` lists; nothing without one, the last of several."""
    lines = _ORDER.findall(text)
    return [word for word in re.split(r"[\s,]+", lines[-1]) if word] if lines else []


def _asked(context: Context) -> list[str]:
    """The order that a person has given at a gate of this iteration that shows the directions."""
    plan, state, at = context.project.plan, context.state, context.instance.iteration
    schemas = {output.name: output.schema for phase in plan.phases for output in phase.outputs}
    words: list[str] = []
    for gate in plan.gates:
        answer = state.gate(state.current(gate.id, at))
        shows = {schemas[name] for name in gate.shows}
        if shows & {DIRECTIONS, RANKING} and answer is not None and answer.status == APPROVED:
            words += order_words(answer.reason)
    return words


def _repeats(context: Context, directions: Sequence[Mapping[str, Any]]) -> dict[int, list[str]]:
    """Notes of recorded negatives that a direction repeats, by its number."""
    items = [{"id": str(at), "title": one["title"]} for at, one in enumerate(directions, 1)]
    found: dict[int, list[str]] = {}
    with open_store(context.root) as store:
        registry = read_registry(context.root)
        for repeat in repeats(store, registry, items, conditions_now(context)):
            found.setdefault(int(repeat.proposal), []).append(repeat.note.id)
    return found
