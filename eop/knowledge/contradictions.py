"""Who says the opposite of whom, found by rule, and what would settle it.

Two statements contradict each other when they judge the same interventions by the same number, say
``better`` and ``worse``, and their conditions can hold at once. A conclusion settles it with claims
whose conditions really part the two sides, each resting on the evidence of its side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eop.core.canonical import digest
from eop.knowledge.conditions import meet, within
from eop.knowledge.effect import BETTER, WORSE, opposite
from eop.knowledge.index import judged_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from eop.knowledge.pages import Claim
    from eop.knowledge.store import Statement, Store

SCHEMA = "contradictions/1"


@dataclass(frozen=True)
class Contradiction:
    """Two statements that cannot both hold: ``better`` and ``worse``, of the same thing."""

    better: Statement
    worse: Statement

    @property
    def id(self) -> str:
        """12 hex digits of what is said on both sides, and by whom."""
        sides = [[side.source, side.judged, dict(side.seen)] for side in self.sides]
        return digest(sides)[:12]

    @property
    def sides(self) -> tuple[Statement, Statement]:
        """Both statements."""
        return self.better, self.worse

    @property
    def claims(self) -> list[str]:
        """Ids of the claims in it; a contradiction of two notes has none."""
        sources = (side.source for side in self.sides)
        return [name.removeprefix("claim:") for name in sources if name.startswith("claim:")]

    def __str__(self) -> str:
        return f"{self.better.source} and {self.worse.source} contradict each other"


def contradictions(store: Store) -> list[Contradiction]:
    """All contradictions, in a stable order; what a claim says it disputes is none of them."""
    found = (pair for judged in store.disputed() for pair in _pairs(store, judged))
    return [one for one in found if not store.declared(one.better.source, one.worse.source)]


def _pairs(store: Store, judged: str) -> Iterator[Contradiction]:
    worse = store.statements(judged, WORSE)
    for one in store.statements(judged, BETTER):
        for other in worse:
            if meet(one.seen, other.seen):
                yield Contradiction(one, other)


def artifact(store: Store, found: Iterable[Contradiction]) -> dict[str, Any]:
    """What the agent of a reconciliation is given: both sides of each, with their evidence."""
    items = [
        {"id": one.id, "judged": one.better.judged}
        | {side: _side(store, statement) for side, statement in _sides(one)}
        for one in found
    ]
    return {"schema": SCHEMA, "found": bool(items), "contradictions": items}


def _sides(found: Contradiction) -> Iterator[tuple[str, Statement]]:
    yield from zip((BETTER, WORSE), found.sides, strict=True)


def _side(store: Store, statement: Statement) -> dict[str, Any]:
    notes = [
        {
            "id": note.id,
            "title": note.title,
            "effect": note.effect.to_json(),
            "conditions": note.seen,
            "lesson": note.lesson,
        }
        for note in store.notes(evidence(store, statement))
    ]
    says = next((claim.says for claim in claims_of(store, statement)), None)
    return {
        "source": statement.source,
        "says": says,
        "conditions": dict(statement.seen),
        "notes": notes,
    }


def evidence(store: Store, statement: Statement) -> list[str]:
    """Ids of the notes behind a statement: those of its claims, or the note itself."""
    if statement.source.startswith("note:"):
        return [statement.source.removeprefix("note:")]
    return sorted({name for claim in claims_of(store, statement) for name in claim.notes})


def claims_of(store: Store, statement: Statement) -> list[Claim]:
    """The claims that a statement is: all that say it under its conditions; none for a note."""
    return store.alike(statement) if statement.source.startswith("claim:") else []


def objections(store: Store, found: Contradiction, claims: Iterable[Claim]) -> list[str]:
    """Why these claims do not settle a contradiction; nothing when they do."""
    claims = list(claims)
    problems = [line for claim in claims for line in _unfounded(store, found, claim)]
    for side, statement in _sides(found):
        cited = {name for claim in claims if claim.sign == side for name in claim.notes}
        for note in store.notes(evidence(store, statement)):
            if note.sign == side and note.id not in cited:
                who = f"'{side}' ({statement.source})"
                problems.append(f"the evidence of {who} is not cited for it: {note.id}")
    for at, one in enumerate(claims):
        for other in claims[at + 1 :]:
            if opposite(one.sign, other.sign) and meet(one.when, other.when):
                problems.append(f"the conditions of {one.id} and {other.id} do not part them")
    return problems


def _unfounded(store: Store, found: Contradiction, claim: Claim) -> Iterator[str]:
    """What is wrong with one claim of a conclusion."""
    if judged_key(claim.interventions, claim.metric) != found.better.judged:
        yield f"{claim.id} judges something else"
    for name in claim.notes:
        note = store.note(name)
        if note is None:
            yield f"{claim.id} cites {name}, which is no note"
        elif note.sign != claim.sign:
            yield f"{claim.id} cites {name}, which says {note.sign}"
        elif not within(note.seen, claim.when):
            yield f"{claim.id} cites {name}, which was not seen under its conditions"
    for sign in (BETTER, WORSE):
        if not opposite(sign, claim.sign):
            continue
        for other in store.statements(found.better.judged, sign):
            if other.source.startswith("note:") and meet(other.seen, claim.when):
                yield f"{other.source} says the opposite of {claim.id} under its conditions"
