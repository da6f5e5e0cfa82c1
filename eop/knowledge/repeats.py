"""Proposals that repeat a recorded negative under the same conditions, before they cost anything.

It is a rule over names, settings and words: it points a person to a note, and decides nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eop.knowledge.conditions import flat, meet
from eop.knowledge.rank import by_links, by_words
from eop.knowledge.text import note_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from eop.knowledge.entities import Registry
    from eop.knowledge.facts import Facts
    from eop.knowledge.store import Store

SCHEMA = "screening/1"
_ALIKE = 0.6
_WORD = re.compile(r"[^\W_]{3,}")


@dataclass(frozen=True)
class Repeat:
    """A proposal, a note that speaks against it, and in what the two are the same."""

    proposal: str
    note: Facts
    why: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "proposal": self.proposal,
            "note": self.note.id,
            "sign": self.note.sign,
            "why": list(self.why),
            "seen": note_line(self.note).removeprefix("- "),
        }


def repeats(
    store: Store,
    registry: Registry,
    proposals: Sequence[Mapping[str, Any]],
    conditions: Mapping[str, Any],
) -> list[Repeat]:
    """Every negative note that a proposal repeats, in the order of the proposals.

    A note counts where its conditions can be those of now (``conditions``, flat), it is not
    superseded, and it shares with the proposal its name, its settings, its interventions or nearly
    all words of its title. What is set to another value is another experiment.
    """
    found = []
    for item in proposals:
        change = _settings(item)
        about = _interventions(registry, item, change)
        for note in _nearest(store, item, about, change):
            why = tuple(_same(note, item, about, change))
            if why and note.id not in store.superseded and meet(note.conditions, conditions):
                found.append(Repeat(str(item["id"]), note, why))
    return found


def screening(
    store: Store,
    registry: Registry,
    proposals: Sequence[Mapping[str, Any]],
    conditions: Mapping[str, Any],
) -> dict[str, Any]:
    """What a gate shows beside a list of proposals, as data of the schema ``screening``."""
    found = repeats(store, registry, proposals, conditions)
    flagged = {repeat.proposal for repeat in found}
    return {
        "schema": SCHEMA,
        "repeats": [repeat.to_json() for repeat in found],
        "new": [str(item["id"]) for item in proposals if str(item["id"]) not in flagged],
        "notes": store.count("note"),
    }


def _nearest(
    store: Store, item: Mapping[str, Any], about: Sequence[str], change: Mapping[str, Any]
) -> list[Facts]:
    """Negative notes near a proposal, by id; a rule picks from them."""
    links = [*about, *(f"setting:{key}" for key in change)]
    words = f"{item['title']} {str(item['id']).replace('-', ' ')}"
    documents = {
        *by_links(store.index, links, negative=True),
        *by_words(store.index, words, negative=True),
    }
    names = store.names(documents)
    return list(store.notes(sorted(name.removeprefix("note:") for name in names.values())))


def _same(
    note: Facts, item: Mapping[str, Any], about: Sequence[str], change: Mapping[str, Any]
) -> Iterator[str]:
    seen = {key: after for key, (_, after) in note.change.settings.items()}
    if any(seen[key] != change[key] for key in seen.keys() & change.keys()):
        return
    if change and seen == change and not note.change.paths:
        yield "the same settings"
    if about and set(about) == set(note.interventions):
        yield f"the same intervention: {', '.join(about)}"
    if note.proposal == item["id"]:
        yield f"the same name: {note.proposal}"
    if _likeness(note.title, str(item["title"])) >= _ALIKE:
        yield "nearly the same words"


def _interventions(
    registry: Registry, item: Mapping[str, Any], change: Mapping[str, Any]
) -> list[str]:
    """What a proposal changes: by its settings where it names them, else by its name and title."""
    words = f"{str(item['id']).replace('-', ' ')} {item['title']}"
    found = registry.touched(change, ()) if change else registry.named(words)
    return [name for name in found if name.startswith("intervention:")]


def _settings(item: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a recipe; a proposal of an agent names none."""
    recipe = item.get("recipe")
    return dict(flat(recipe, "")) if isinstance(recipe, dict) else {}


def _likeness(one: str, other: str) -> float:
    """Shared words over all words of two titles (Jaccard), case aside."""
    words, others = (set(_WORD.findall(text.casefold())) for text in (one, other))
    return len(words & others) / len(words | others) if words | others else 0.0
