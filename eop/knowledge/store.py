"""Questions to the index: notes, claims, who contradicts whom."""

from __future__ import annotations

from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import orjson

from eop.knowledge.effect import BETTER, WORSE
from eop.knowledge.facts import Facts
from eop.knowledge.index import judged_key, open_index, to_json
from eop.knowledge.pages import Claim, Problem

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path


@dataclass(frozen=True)
class Statement:
    """That something did, or does, this under these conditions; who says so, by kind and id."""

    judged: str
    sign: str
    seen: Mapping[str, Any]
    source: str


@dataclass(frozen=True)
class Store:
    """The knowledge of a project, as it was when the store was opened."""

    index: sqlite3.Connection

    @cached_property
    def superseded(self) -> dict[str, str]:
        """Notes that no longer count, each with the note that says so."""
        rows = self.index.execute(
            "SELECT target, source FROM links WHERE relation = 'supersedes' ORDER BY target, source"
        )
        return {_id(target): _id(source) for target, source in rows}

    def note(self, name: str) -> Facts | None:
        """A note's facts; ``None`` without such a note."""
        return next(self.notes([name]), None)

    def notes(self, names: Iterable[str] | None = None) -> Iterator[Facts]:
        """Notes by id, all of them without ``names``; those that are not there are left out."""
        if names is None:
            rows = self.index.execute("SELECT facts FROM docs WHERE kind = 'note' ORDER BY name")
            yield from (Facts.from_json(orjson.loads(row[0])) for row in rows)
            return
        for name in names:
            query = "SELECT facts FROM docs WHERE name = ?"
            for row in self.index.execute(query, (f"note:{name}",)):
                yield Facts.from_json(orjson.loads(row[0]))

    def entities(self) -> list[str]:
        """Ids of ``knowledge/entities.yaml``, sorted."""
        return [row[0] for row in self.index.execute("SELECT id FROM entities ORDER BY id")]

    def labels(self) -> list[tuple[str, str, str]]:
        """Of each note and claim its name, its title and its sign, by name."""
        rows = self.index.execute(
            "SELECT docs.name, words.title, docs.sign FROM docs "
            "JOIN words ON words.rowid = docs.doc ORDER BY docs.name"
        )
        return rows.fetchall()

    def links(self) -> list[tuple[str, str, str]]:
        """All typed links: source, relation, target."""
        rows = self.index.execute(
            "SELECT DISTINCT source, relation, target FROM links ORDER BY 1, 2, 3"
        )
        return rows.fetchall()

    def count(self, kind: str) -> int:
        """How many there are of a kind, ``note`` or ``claim``."""
        query = "SELECT COUNT(*) FROM docs WHERE kind = ?"
        return int(self.index.execute(query, (kind,)).fetchone()[0])

    def names(self, documents: Iterable[int]) -> dict[int, str]:
        """Kind and id of documents of the index, by their numbers there."""
        chosen = ", ".join(str(int(document)) for document in documents)
        rows = self.index.execute(f"SELECT doc, name FROM docs WHERE doc IN ({chosen})")
        return dict(rows.fetchall())

    def citing(self, note: str) -> list[str]:
        """The claims that cite a note, by their names in the index, sorted."""
        rows = self.index.execute(
            "SELECT DISTINCT source FROM links WHERE target = ? AND relation = 'cites' ORDER BY 1",
            (f"note:{note}",),
        )
        return [row[0] for row in rows]

    def claims(self, name: str | None = None) -> list[Claim]:
        """All claims, or those of this id, by page and line."""
        which = "" if name is None else "AND name = ?"
        rows = self.index.execute(
            f"SELECT facts, path, line FROM docs WHERE kind = 'claim' {which} ORDER BY path, line",
            () if name is None else (f"claim:{name}",),
        )
        return [Claim.from_json(orjson.loads(facts), path, line) for facts, path, line in rows]

    def alike(self, statement: Statement) -> list[Claim]:
        """The claims that a statement speaks for: those that say this under the same conditions."""
        rows = self.index.execute(
            "SELECT facts, path, line FROM docs WHERE kind = 'claim' "
            "AND judged = ? AND sign = ? AND seen = ? ORDER BY name",
            (statement.judged, statement.sign, to_json(statement.seen)),
        )
        return [Claim.from_json(orjson.loads(facts), path, line) for facts, path, line in rows]

    def problems(self) -> list[Problem]:
        """What is wrong with the files as such."""
        rows = self.index.execute("SELECT path, line, message FROM problems ORDER BY 1, 2")
        return [Problem(*row) for row in rows]

    def statements(self, judged: str, sign: str) -> list[Statement]:
        """What says this of the same thing: notes that count, and claims; those alike are one.

        Of those with the same conditions the first by id speaks for all.
        """
        rows = self.index.execute(
            "SELECT seen, MIN(name) FROM docs WHERE judged = ? AND sign = ? AND NOT EXISTS "
            "(SELECT 1 FROM links WHERE target = docs.name AND relation = 'supersedes') "
            "GROUP BY seen, kind ORDER BY 2",
            (judged, sign),
        )
        return [Statement(judged, sign, orjson.loads(seen), name) for seen, name in rows]

    def disputed(self) -> list[str]:
        """What is judged both better and worse by somebody, whatever the conditions."""
        rows = self.index.execute(
            "SELECT judged FROM docs WHERE sign IN (?, ?) AND judged NOT LIKE '% of ' "
            "GROUP BY judged HAVING COUNT(DISTINCT sign) = 2 ORDER BY judged",
            (BETTER, WORSE),
        )
        return [row[0] for row in rows]

    def declared(self, one: str, other: str) -> bool:
        """Whether a claim says itself that it disputes the other; both are kind and id."""
        return (one, other) in self._disputes or (other, one) in self._disputes

    @cached_property
    def _disputes(self) -> frozenset[tuple[str, str]]:
        rows = self.index.execute("SELECT source, target FROM links WHERE relation = 'disputes'")
        return frozenset(rows.fetchall())

    def against(self, claim: Claim, sign: str) -> list[Statement]:
        """What says ``sign`` of what the claim judges."""
        return self.statements(judged_key(claim.interventions, claim.metric), sign)


@contextmanager
def open_store(root: Path, *, certain: bool = False) -> Iterator[Store]:
    """The project's knowledge as it is now; see ``open_index`` for ``certain`` and the errors."""
    with closing(open_index(root, certain=certain)) as index:
        yield Store(index)


def _id(name: str) -> str:
    return name.partition(":")[2]
