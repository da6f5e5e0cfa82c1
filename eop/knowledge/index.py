"""All notes and claims in one file that answers in milliseconds; made of them, never the truth.

``runs/.knowledge.sqlite`` holds the parsed front matter and claims, SQLite's own full-text index
(FTS5, which ranks by BM25) and the typed links between everything. It is brought up to date before
each use, by the stamps of the files, or by their digests where that must be certain. A new version
replaces the file as a whole: a reader, on any host, has one or the other. It can be deleted.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import time
import zlib
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

import orjson

from eop.core.errors import EopError, ExitCode, Where
from eop.core.files import writing
from eop.core.locks import exclusive
from eop.knowledge.entities import FILE as ENTITIES
from eop.knowledge.entities import read_registry
from eop.knowledge.pages import NOTES, WIKI, parse_note, parse_page

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from eop.knowledge.facts import Facts
    from eop.knowledge.pages import Claim

_FRESH_NS = 2_000_000_000
_SCHEMA = """
CREATE TABLE files (path TEXT PRIMARY KEY, sha256 TEXT, stamp TEXT, seen INTEGER);
CREATE TABLE listing (digest INTEGER, seen INTEGER);
CREATE TABLE docs (
    doc INTEGER PRIMARY KEY, name TEXT, kind TEXT, path TEXT, line INTEGER, judged TEXT, sign TEXT,
    negative INTEGER, seen TEXT, facts TEXT
);
CREATE INDEX docs_name ON docs (name);
CREATE INDEX docs_path ON docs (path);
CREATE INDEX docs_judged ON docs (judged, sign);
CREATE TABLE links (path TEXT, source TEXT, relation TEXT, target TEXT);
CREATE INDEX links_path ON links (path);
CREATE INDEX links_source ON links (source);
CREATE INDEX links_target ON links (target);
CREATE INDEX links_superseded ON links (target, source) WHERE relation = 'supersedes';
CREATE INDEX links_disputes ON links (source, target) WHERE relation = 'disputes';
CREATE TABLE entities (path TEXT, id TEXT);
CREATE TABLE problems (path TEXT, line INTEGER, message TEXT);
CREATE VIRTUAL TABLE words USING fts5 (title, text, tokenize = 'porter unicode61');
CREATE VIRTUAL TABLE vocabulary USING fts5vocab (words, row);
"""
# An index that was laid out otherwise is made anew.
_VERSION = zlib.crc32(_SCHEMA.encode()) & 0x7FFFFFFF


class Found(NamedTuple):
    """A file below the project as it lies there; ``stamp`` changes whenever it is written."""

    path: str
    stamp: str
    changed_ns: int


def index_file(root: Path) -> Path:
    """Where the index lies."""
    return root / "runs" / ".knowledge.sqlite"


def open_index(root: Path, *, certain: bool = False) -> sqlite3.Connection:
    """The index of the project's knowledge as it is now, to read from; close it after use.

    A file whose stamp (times, size, inode) is as before is taken for unchanged; with ``certain``
    every file is read and its digest compared. Raises EOP681 for a malformed list of entities and
    EOP682 when SQLite cannot index text.
    """
    target = index_file(root)
    if certain or not _current(target, root):
        with exclusive(target.with_name(".knowledge.lock"), wait=True):
            _update(target, root, certain)
    return _reader(target)


def judged_key(interventions: Iterable[str], metric: str) -> str:
    """What statements have in common that judge the same thing by the same number."""
    return f"{metric} of {' '.join(sorted(interventions))}"


def _current(target: Path, root: Path) -> bool:
    if not _usable(target):
        return False
    with closing(_reader(target)) as index:
        found = list(_files(root))
        digest, seen = index.execute("SELECT digest, seen FROM listing").fetchone()
        latest = max((file.changed_ns for file in found), default=0)
        return bool(digest == _listing(found) and latest <= seen - _FRESH_NS)


def _listing(found: list[Found]) -> int:
    """All files and their stamps in a number: ten times as fast to compare as the files."""
    return zlib.crc32("\n".join(f"{file.path} {file.stamp}" for file in sorted(found)).encode())


def _usable(target: Path) -> bool:
    """Whether there is an index, and it is one of this layout."""
    if not target.is_file():
        return False
    try:
        with closing(_reader(target)) as index:
            return bool(index.execute("PRAGMA user_version").fetchone()[0] == _VERSION)
    except sqlite3.DatabaseError:
        return False


def _reader(target: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{target.as_uri()}?mode=ro&immutable=1", uri=True)


def _differing(index: sqlite3.Connection, found: list[Found]) -> tuple[list[Found], list[str]]:
    """Files that are new or may have changed, and those that are gone."""
    rows = index.execute("SELECT path, stamp, seen FROM files")
    known = {path: (stamp, seen) for path, stamp, seen in rows}
    changed = [
        file
        for file in found
        # What was written at the very moment of the last look may have been written again.
        if file.path not in known
        or known[file.path][0] != file.stamp
        or file.changed_ns > known[file.path][1] - _FRESH_NS
    ]
    return changed, list(known.keys() - {file.path for file in found})


def _files(root: Path) -> Iterator[Found]:
    for folder in (NOTES, WIKI):
        if (root / folder).is_dir():
            with os.scandir(root / folder) as entries:
                for entry in entries:
                    if entry.name.endswith(".md") and not entry.name.startswith("."):
                        yield _found(f"{folder}/{entry.name}", entry.stat())
    if (root / ENTITIES).is_file():
        yield _found(ENTITIES, (root / ENTITIES).stat())


def _found(path: str, stat: os.stat_result) -> Found:
    stamp = f"{stat.st_mtime_ns} {stat.st_ctime_ns} {stat.st_size} {stat.st_ino}"
    return Found(path, stamp, max(stat.st_mtime_ns, stat.st_ctime_ns))


def _update(target: Path, root: Path, certain: bool) -> None:
    draft = target.with_name(f".{target.name}.tmp")
    draft.unlink(missing_ok=True)
    with writing(target):
        fresh = not _usable(target)
        if not fresh:
            shutil.copyfile(target, draft)
        with closing(_writer(draft)) as index, index:
            if fresh:
                _make(index)
            _bring_up(index, root, certain)
        draft.replace(target)


def _writer(path: Path) -> sqlite3.Connection:
    index = sqlite3.connect(path)
    # The draft is nobody's until it is renamed.
    index.execute("PRAGMA journal_mode = OFF")
    index.execute("PRAGMA synchronous = OFF")
    return index


def _make(index: sqlite3.Connection) -> None:
    try:
        index.executescript(f"{_SCHEMA} PRAGMA user_version = {_VERSION};")
    except sqlite3.OperationalError as error:
        raise EopError(
            "EOP682",
            f"this Python's SQLite cannot index text: {error}",
            where=Where("sqlite3"),
            hint="use a Python whose SQLite has FTS5, as those of python.org and Debian do",
            exit_code=ExitCode.ENVIRONMENT,
        ) from error


def _bring_up(index: sqlite3.Connection, root: Path, certain: bool) -> None:
    now = time.time_ns()
    found = list(_files(root))
    changed, gone = _differing(index, found)
    known = dict(index.execute("SELECT path, sha256 FROM files"))
    for path in gone:
        _remove(index, path)
    # In the order of their times, so that a higher number is a later note.
    for file in sorted(
        found if certain else changed, key=lambda file: (file.changed_ns, file.path)
    ):
        content = (root / file.path).read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        if known.get(file.path) != digest:
            _remove(index, file.path)
            _add(index, root, file.path, content)
        row = (file.path, digest, file.stamp, now)
        index.execute("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?)", row)
    index.execute("DELETE FROM listing")
    index.execute("INSERT INTO listing VALUES (?, ?)", (_listing(found), now))


def _remove(index: sqlite3.Connection, path: str) -> None:
    index.execute("DELETE FROM words WHERE rowid IN (SELECT doc FROM docs WHERE path = ?)", (path,))
    for table in ("docs", "links", "entities", "problems", "files"):
        index.execute(f"DELETE FROM {table} WHERE path = ?", (path,))


def _add(index: sqlite3.Connection, root: Path, path: str, content: bytes) -> None:
    if path == ENTITIES:
        for entity in read_registry(root).entities.values():
            index.execute("INSERT INTO entities VALUES (?, ?)", (path, entity.id))
            _link(index, path, entity.id, entity.relations)
        return
    text = content.decode(errors="replace")
    if path.startswith(f"{NOTES}/"):
        facts, body, wrong = parse_note(root, path, text)
        if facts is not None:
            _add_note(index, path, facts, body)
    else:
        claims, wrong = parse_page(root, path, text)
        for claim in claims:
            _add_claim(index, claim)
    rows = [(problem.path, problem.line, problem.message) for problem in wrong]
    index.executemany("INSERT INTO problems VALUES (?, ?, ?)", rows)


def _add_note(index: sqlite3.Connection, path: str, facts: Facts, body: str) -> None:
    judged = judged_key(facts.interventions, facts.effect.metric)
    row = (f"note:{facts.id}", "note", path, 1, judged, facts.sign, facts.negative)
    changed = [f"{key} {after}" for key, (_, after) in facts.change.settings.items()]
    text = "\n".join([*facts.entities, *changed, *facts.change.paths, facts.lesson or "", body])
    _insert(index, row, facts.seen, facts.to_json(), facts.title, text)
    links = [("about", name) for name in facts.entities]
    links += [("changes", f"setting:{key}") for key in facts.change.settings]
    links += [("changes", f"path:{name}") for name in facts.change.paths]
    links += [("measured_on", f"dataset:{facts.conditions.get('dataset')}")]
    links += [("rests_on", evidence.path) for evidence in facts.evidence]
    links += [("supersedes", f"note:{name}") for name in facts.supersedes]
    _link(index, path, f"note:{facts.id}", links)


def _add_claim(index: sqlite3.Connection, claim: Claim) -> None:
    judged = judged_key(claim.interventions, claim.metric)
    row = (f"claim:{claim.id}", "claim", claim.path, claim.line, judged, claim.sign, False)
    _insert(index, row, claim.when, claim.to_json(), claim.says, _words(claim))
    links = [("about", name) for name in claim.about]
    links += [("cites", f"note:{name}") for name in claim.notes]
    links += [("disputes", name) for name in claim.disputes]
    _link(index, claim.path, f"claim:{claim.id}", links)
    page = claim.path.removeprefix(f"{WIKI}/").removesuffix(".md")
    _link(index, claim.path, f"page:{page}", [("holds", f"claim:{claim.id}")])


def _words(claim: Claim) -> str:
    return "\n".join([*claim.about, claim.lesson or ""])


def _insert(
    index: sqlite3.Connection,
    row: tuple[str, str, str, int, str, str, bool],
    seen: object,
    facts: object,
    title: str,
    text: str,
) -> None:
    done = index.execute(
        "INSERT INTO docs (name, kind, path, line, judged, sign, negative, seen, facts) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*row, to_json(seen), to_json(facts)),
    )
    index.execute("INSERT INTO words (rowid, title, text) VALUES (?, ?, ?)",
                  (done.lastrowid, title, text))  # fmt: skip


def _link(
    index: sqlite3.Connection, path: str, source: str, links: Iterable[tuple[str, str]]
) -> None:
    rows = [(path, source, relation, target) for relation, target in links]
    index.executemany("INSERT INTO links VALUES (?, ?, ?, ?)", rows)


def to_json(value: object) -> str:
    """How the index writes data: the same data, the same text."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
