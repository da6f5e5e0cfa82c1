"""`eop knowledge check`: what may not be believed, or would be wrong in silence."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eop.core.canonical import file_digest
from eop.knowledge.conditions import meet, within
from eop.knowledge.contradictions import contradictions
from eop.knowledge.effect import BETTER, WORSE, opposite
from eop.knowledge.entities import read_registry
from eop.knowledge.pages import NOTES, Problem
from eop.knowledge.store import open_store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from eop.knowledge.contradictions import Contradiction
    from eop.knowledge.entities import Registry
    from eop.knowledge.facts import Evidence, Facts
    from eop.knowledge.pages import Claim
    from eop.knowledge.store import Store


@dataclass(frozen=True)
class Findings:
    """What a check has found.

    ``open`` are contradictions of notes that no claim has taken up: nothing is wrong with them, and
    nobody can tell yet which holds.
    """

    notes: int
    claims: int
    problems: tuple[Problem, ...]
    open: tuple[Contradiction, ...]


def check(root: Path) -> Findings:
    """Read every file of the knowledge anew and hold it to its schema and its evidence."""
    registry = read_registry(root)
    with open_store(root, certain=True) as store:
        claims = store.claims()
        notes = list(store.notes())
        found = contradictions(store)
        problems = [
            *store.problems(),
            *_repeated_ids(claims),
            *(problem for note in notes for problem in _note_problems(root, store, registry, note)),
            *(
                Problem(claim.path, claim.line, message)
                for claim in claims
                for message in (*_unknown(registry, claim.about), *doubts(root, store, claim))
            ),
        ]
    left = tuple(one for one in found if not one.claims)
    return Findings(len(notes), len(claims), tuple(sorted(problems)), left)


def doubts(root: Path, store: Store, claim: Claim) -> list[str]:
    """Why a claim may not be believed; nothing when its evidence is there and carries it."""
    faults = list(_faults(root, store, claim))
    cited = list(store.notes(claim.notes))
    if not faults and not any(n.sign == claim.sign and within(n.seen, claim.when) for n in cited):
        faults = [f"no note that it cites says '{claim.sign}' under its conditions"]
    return [f"{claim.id}: {fault}" for fault in (*faults, *_opposed(store, claim))]


def _faults(root: Path, store: Store, claim: Claim) -> Iterator[str]:
    """What is wrong with the evidence of a claim, note by note."""
    if not claim.notes:
        yield "a claim without evidence: it cites no note"
    for name in claim.notes:
        note = store.note(name)
        if note is None:
            yield f"its evidence is gone: there is no note '{name}'"
            continue
        lost = [problem for evidence in note.evidence for problem in _lost(root, evidence)]
        if name in store.superseded:
            yield f"its evidence is superseded: {store.superseded[name]} replaces {name}"
        elif lost:
            yield f"its evidence does not hold: {name}: {lost[0]}"
        elif not set(note.entities) & set(claim.about):
            yield f"{name} is about something else"


def _opposed(store: Store, claim: Claim) -> Iterator[str]:
    """Claims and notes that say the opposite, where the claim does not say so itself."""
    if not claim.interventions:
        return
    for sign in (BETTER, WORSE):
        if opposite(sign, claim.sign):
            for other in store.against(claim, sign):
                told = store.declared(f"claim:{claim.id}", other.source)
                if not told and meet(claim.when, other.seen):
                    yield f"{other.source} says '{sign}', and both can hold at once"


def _note_problems(root: Path, store: Store, registry: Registry, note: Facts) -> Iterator[Problem]:
    path = f"{NOTES}/{note.id}.md"
    for message in _unknown(registry, note.entities):
        yield Problem(path, 1, message)
    for evidence in note.evidence:
        for message in _lost(root, evidence):
            yield Problem(path, 1, message)
    for name in note.supersedes:
        if store.note(name) is None:
            yield Problem(path, 1, f"it supersedes '{name}', which is no note")


def _lost(root: Path, evidence: Evidence) -> Iterator[str]:
    path = root / evidence.path
    if not path.is_file():
        yield f"{evidence.path} is missing"
    elif file_digest(path) != evidence.sha256:
        yield f"{evidence.path} has changed since the note was written"


def _unknown(registry: Registry, names: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        # Data sets come and go with the projects that use them.
        if name not in registry.entities and not name.startswith("dataset:"):
            yield f"'{name}' is no entity of knowledge/entities.yaml"


def _repeated_ids(claims: list[Claim]) -> Iterator[Problem]:
    places = defaultdict(list)
    for claim in claims:
        places[claim.id].append(claim)
    for name, found in places.items():
        for claim in found[1:]:
            first = f"{found[0].path}:{found[0].line}"
            yield Problem(claim.path, claim.line, f"a claim '{name}' is there already: {first}")
