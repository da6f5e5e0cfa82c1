"""The few lessons that bear on a phase, under a budget, with a manifest of what was told and why.

Notes help to find; only the wiki is told. A note leads to the claims that rest on it, and one that
no claim rests on is withheld, as is a claim that ``eop knowledge check`` would refuse.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eop.knowledge import rank
from eop.knowledge.checks import doubts
from eop.knowledge.store import open_store
from eop.knowledge.text import claim_line, tokens

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from eop.knowledge.store import Store

    _Ranked = tuple[str, list[str]]

SCHEMA = "recalled/1"
_HEADING = "## What is known"
_PARTS = ("setting:", "path:")
_NEGATIVE_SHARE = 3
_LEAST = 16


@dataclass(frozen=True)
class Query:
    """What knowledge is wanted about.

    ``links`` are entities, ``setting:<key>`` and ``path:<file>``. With ``fill``, what is left of
    the budget goes to the latest notes, whatever they are about.
    """

    text: str
    links: tuple[str, ...] = ()
    fill: bool = False


@dataclass(frozen=True)
class Item:
    """A claim (``claim:<id>``), how it was found, and its text."""

    name: str
    why: tuple[str, ...]
    line: str

    def to_json(self) -> dict[str, Any]:
        """Plain data; the text by its digest, for what was told stands in the prompt."""
        sha256 = hashlib.sha256(self.line.encode()).hexdigest()
        return {
            "name": self.name,
            "why": list(self.why),
            "tokens": tokens(self.line),
            "sha256": sha256,
        }


@dataclass(frozen=True)
class Recalled:
    """What is told for a query, within ``budget`` tokens, and what is not.

    ``withheld`` pairs what may not be told with the reason; ``left_out`` names what would have been
    next. ``known`` counts all claims.
    """

    query: Query
    budget: int
    told: tuple[Item, ...]
    withheld: tuple[tuple[str, str], ...]
    left_out: tuple[str, ...]
    known: int

    @property
    def text(self) -> str:
        """Markdown for a prompt; empty when there is nothing to tell."""
        if not self.told:
            return ""
        lines = [_HEADING, "", *(item.line for item in self.told)]
        if len(self.told) < self.known:
            lines += ["", _remark(len(self.told), self.known)]
        return "\n".join(lines) + "\n"

    def to_json(self) -> dict[str, Any]:
        """The manifest: what was asked, told, withheld and left out."""
        return {
            "schema": SCHEMA,
            "query": {
                "sha256": hashlib.sha256(self.query.text.encode()).hexdigest(),
                "links": list(self.query.links),
            },
            "budget": self.budget,
            "tokens": tokens(self.text),
            "known": self.known,
            "told": [item.to_json() for item in self.told],
            "withheld": [{"name": name, "why": why} for name, why in self.withheld],
            "left_out": list(self.left_out),
        }


def recall(root: Path, query: Query, budget: int) -> Recalled:
    """The lessons that bear on ``query``, ``budget`` tokens at most; none for a budget of 0."""
    if budget <= 0:
        return Recalled(query, budget, (), (), (), 0)
    with open_store(root) as store:
        known = store.count("claim")
        frame = tokens(_HEADING) + 2
        choice = _Choice(root, store)
        room = budget - frame - tokens(_remark(known, known))
        ranked, negatives = _ranked(store, query)
        choice.take(negatives, room // _NEGATIVE_SHARE)
        choice.take(ranked, room)
    left_out = tuple(choice.left_out)
    return Recalled(
        query, budget, tuple(choice.told), tuple(choice.withheld.items()), left_out, known
    )


def _remark(told: int, known: int) -> str:
    return f"These are {told} of {known} claims; the others bear on this less."


def _ranked(store: Store, query: Query) -> tuple[list[_Ranked], list[_Ranked]]:
    """All that bears on the query, by name and with the reasons; and its nearest negatives."""
    index = store.index
    entities = [name for name in query.links if not name.startswith(_PARTS)]
    negatives = rank.fused(
        {
            "negative by links": rank.by_links(index, query.links, negative=True),
            "negative by words": rank.by_words(index, query.text, negative=True),
        }
    )
    found = rank.fused(
        {
            "words": rank.by_words(index, query.text),
            "links": rank.by_links(index, query.links),
            "neighbours": rank.by_links(index, rank.neighbours(index, entities)),
            "negative": [document for document, _ in negatives],
        }
    )
    if query.fill:
        seen = {document for document, _ in found}
        found += [(doc, ["latest"]) for doc in rank.newest(index) if doc not in seen]
    names = store.names(document for document, _ in found)
    named, negative = ([(names[doc], why) for doc, why in some] for some in (found, negatives))
    return named, negative


class _Choice:
    """What has been picked so far, in the order of the lists."""

    def __init__(self, root: Path, store: Store) -> None:
        self._root, self._store = root, store
        self.told: list[Item] = []
        self.withheld: dict[str, str] = {}
        self.left_out: dict[str, None] = {}
        self._cost = 0

    def take(self, ranked: Sequence[_Ranked], limit: int) -> None:
        """Pick from a list until ``limit`` tokens are spent in all."""
        for name, why in ranked:
            if limit - self._cost < _LEAST:
                return
            for item in self._standing(name, why):
                self._pick(item, limit)

    def _pick(self, item: Item, limit: int) -> None:
        cost = tokens(item.line) + 1
        if any(item.name == other.name for other in self.told):
            return
        if self._cost + cost > limit:
            self.left_out[item.name] = None
            return
        self.left_out.pop(item.name, None)
        self.told.append(item)
        self._cost += cost

    def _standing(self, name: str, why: list[str]) -> Iterator[Item]:
        """The claim of this name, or the claims that rest on a note."""
        kind, _, short = name.partition(":")
        if kind == "claim":
            yield from self._claim(name, why)
            return
        citing = self._store.citing(short)
        if not citing:
            newer = self._store.superseded.get(short)
            reason = f"superseded by {newer}" if newer else "no claim of the wiki rests on it"
            self.withheld[name] = reason
        for claim in citing:
            yield from self._claim(claim, [*why, f"rests on {short}"])

    def _claim(self, name: str, why: list[str]) -> Iterator[Item]:
        for claim in self._store.claims(name.removeprefix("claim:")):
            wrong = doubts(self._root, self._store, claim) if name not in self.withheld else ["-"]
            if wrong:
                self.withheld.setdefault(name, wrong[0])
            else:
                yield Item(name, tuple(why), claim_line(claim))
