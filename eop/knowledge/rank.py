"""What bears on a query, from four sides, each a list of documents with the best first."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping, Sequence

LIMIT = 40
_RAREST = 16
_RRF = 60
_WORD = re.compile(r"[^\W_]{2,}")
_NEGATIVE = "AND negative = 1"
_TITLE_WEIGHT = 3.0


def by_words(index: sqlite3.Connection, text: str, *, negative: bool = False) -> list[int]:
    """Documents by BM25 over the rarest words of ``text`` that anything holds at all."""
    words = _rarest(index, text)
    if not words:
        return []
    rows = index.execute(
        "SELECT words.rowid FROM words JOIN docs ON docs.doc = words.rowid "
        f"WHERE words MATCH ? {_NEGATIVE if negative else ''} "
        f"ORDER BY bm25(words, {_TITLE_WEIGHT}, 1.0), docs.name LIMIT {LIMIT}",
        (" OR ".join(f'"{word}"' for word in words),),
    )
    return [row[0] for row in rows]


def by_links(
    index: sqlite3.Connection, links: Sequence[str], *, negative: bool = False
) -> list[int]:
    """Notes and claims by how many of these they are tied to, the newest first among equals."""
    if not links:
        return []
    marks = ", ".join("?" * len(links))
    rows = index.execute(
        "SELECT docs.doc FROM links JOIN docs ON docs.name = links.source "
        f"WHERE links.target IN ({marks}) {_NEGATIVE if negative else ''} "
        f"GROUP BY docs.doc ORDER BY COUNT(*) DESC, docs.doc DESC LIMIT {LIMIT}",
        tuple(links),
    )
    return [row[0] for row in rows]


def neighbours(index: sqlite3.Connection, entities: Sequence[str]) -> list[str]:
    """Entities one typed edge away from these, in either direction, sorted."""
    if not entities:
        return []
    marks = ", ".join("?" * len(entities))
    rows = index.execute(
        "SELECT target FROM links WHERE path LIKE '%.yaml' "
        f"AND source IN ({marks}) UNION SELECT source FROM links WHERE path LIKE '%.yaml' "
        f"AND target IN ({marks}) ORDER BY 1",
        (*entities, *entities),
    )
    return [row[0] for row in rows if row[0] not in entities]


def newest(index: sqlite3.Connection) -> list[int]:
    """The notes that were indexed last."""
    rows = index.execute(
        f"SELECT doc FROM docs WHERE kind = 'note' ORDER BY doc DESC LIMIT {LIMIT}"
    )
    return [row[0] for row in rows]


def fused(lists: Mapping[str, Iterable[int]]) -> list[tuple[int, list[str]]]:
    """One list of several, with the reasons: which list had it, at which place.

    Reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009), k = 60.
    """
    scores: dict[int, float] = defaultdict(float)
    reasons: dict[int, list[str]] = defaultdict(list)
    for name, documents in lists.items():
        for place, document in enumerate(documents, 1):
            scores[document] += 1 / (_RRF + place)
            reasons[document].append(f"{name} {place}")
    order = sorted(scores, key=lambda document: (-scores[document], document))
    return [(document, reasons[document]) for document in order]


def _rarest(index: sqlite3.Connection, text: str) -> list[str]:
    """The words of a text that the fewest documents hold, as the index stems them.

    A word that half of the documents hold says nothing, and costs a look at each of them.
    """
    words = list(dict.fromkeys(_WORD.findall(text.casefold())))
    if not words:
        return []
    index.executescript(
        "CREATE VIRTUAL TABLE IF NOT EXISTS temp.asked USING fts5 "
        "(word, tokenize = 'porter unicode61');"
        "CREATE VIRTUAL TABLE IF NOT EXISTS temp.stems USING fts5vocab (temp, asked, instance);"
        "DELETE FROM temp.asked;"
    )
    index.executemany("INSERT INTO temp.asked (rowid, word) VALUES (?, ?)", enumerate(words))
    rows = index.execute(
        "SELECT stems.doc, MIN(vocabulary.doc) FROM temp.stems AS stems "
        "JOIN vocabulary ON vocabulary.term = stems.term GROUP BY stems.doc ORDER BY 2, 1"
    ).fetchall()
    total = index.execute("SELECT COUNT(*) FROM docs").fetchone()[0]
    telling = [words[word] for word, count in rows if count * 2 <= max(total, 8)]
    return telling[:_RAREST]
