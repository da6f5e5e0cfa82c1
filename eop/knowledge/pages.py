"""Notes and wiki pages as files: read, checked against their schemas, problems by line."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from eop.core.schema import problems
from eop.core.yaml_files import parse_yaml, read_yaml
from eop.knowledge.effect import METRIC
from eop.knowledge.facts import Facts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jsonschema import Draft202012Validator

NOTES = "knowledge/notes"
WIKI = "knowledge/wiki"
_FRONT = re.compile(r"\A---\n(.*?\n)---\n", re.DOTALL)
_BLOCK = re.compile(r"^```claim[ \t]*\n(.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE)
_NAMED = re.compile(r"^id:[ \t]*['\"]?([a-z0-9][a-z0-9_-]*)", re.MULTILINE)
_OPENING = re.compile(r"^(?:```|~~~)[ \t]*claim\b.*$", re.MULTILINE)


@dataclass(frozen=True, order=True)
class Problem:
    """What is wrong, and where: a file below the project and a line of it, counted from 1."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


@dataclass(frozen=True)
class Claim:
    """What the wiki says, with the notes that it rests on; the block on a page is its form.

    ``when`` are flat conditions, see ``eop.knowledge.conditions``. ``lesson`` are an agent's words.
    """

    id: str
    says: str
    about: tuple[str, ...]
    sign: str
    notes: tuple[str, ...]
    metric: str = METRIC
    when: Mapping[str, Any] = field(default_factory=dict)
    disputes: tuple[str, ...] = ()
    lesson: str | None = None
    path: str = ""
    line: int = 0

    @property
    def interventions(self) -> tuple[str, ...]:
        """The interventions it judges, sorted."""
        return tuple(sorted(name for name in self.about if name.startswith("intervention:")))

    @classmethod
    def from_json(cls, data: Mapping[str, Any], path: str = "", line: int = 0) -> Claim:
        """A claim from data that the schema ``claim`` has passed."""
        lists = {key: tuple(data.get(key, ())) for key in ("about", "notes", "disputes")}
        metric, when = data.get("metric", METRIC), data.get("when", {})
        return cls(
            data["id"],
            data["says"],
            sign=data["sign"],
            metric=metric,
            when=when,
            lesson=data.get("lesson"),
            path=path,
            line=line,
            **lists,
        )

    def to_json(self) -> dict[str, Any]:
        """Plain data in the order of a block; what is left to its default is left out."""
        data: dict[str, Any] = {"id": self.id, "says": self.says, "about": list(self.about)}
        if self.metric != METRIC:
            data["metric"] = self.metric
        data["sign"] = self.sign
        if self.when:
            data["when"] = dict(self.when)
        data["notes"] = list(self.notes)
        if self.disputes:
            data["disputes"] = list(self.disputes)
        if self.lesson:
            data["lesson"] = self.lesson
        return data

    def block(self) -> str:
        """The fenced block of a page."""
        text = yaml.safe_dump(self.to_json(), sort_keys=False, allow_unicode=True, width=100)
        return f"```claim\n{text}```\n"


def parse_note(root: Path, path: str, text: str) -> tuple[Facts | None, str, list[Problem]]:
    """A note's facts, its body, and what is wrong with it; no facts when something is."""
    found = _FRONT.match(text)
    if found is None:
        return None, text, [Problem(path, 1, "a note begins with front matter between '---' lines")]
    body = text[found.end() :]
    try:
        data = parse_yaml(found[1])
    except yaml.YAMLError as error:
        return None, body, [_unreadable(path, 2, error)]
    wrong = [Problem(path, 1, message) for message in _breaches(root, "note", data)]
    if not wrong and data["id"] != Path(path).stem:
        wrong = [Problem(path, 1, f"id: '{data['id']}' is not the file's name")]
    return (None if wrong else Facts.from_json(data)), body, wrong


def note_body(text: str) -> str:
    """What a note says below its front matter; all of a text that has none."""
    found = _FRONT.match(text)
    return text[found.end() :] if found else text


def parse_page(root: Path, path: str, text: str) -> tuple[list[Claim], list[Problem]]:
    """The claims of a page of the wiki, and what is wrong with its blocks."""
    claims, wrong = [], []
    blocks = {found.start(): found for found in _BLOCK.finditer(text)}
    for opening in _OPENING.finditer(text):
        line = text.count("\n", 0, opening.start()) + 1
        block = blocks.get(opening.start())
        if block is None:
            wrong.append(Problem(path, line, "a block of a claim is '```claim', YAML and '```'"))
            continue
        try:
            data = parse_yaml(block[1])
        except yaml.YAMLError as error:
            wrong.append(_unreadable(path, line + 1, error))
            continue
        breaches = [Problem(path, line, message) for message in _breaches(root, "claim", data)]
        wrong += breaches
        if not breaches:
            claims.append(Claim.from_json(data, path, line))
    return claims, wrong


def claim_blocks(text: str) -> list[tuple[str, str]]:
    """The blocks of a page's claims as they stand there, each after its claim's id."""
    found = []
    for block in _BLOCK.finditer(text):
        named = _NAMED.search(block[1])
        if named:
            found.append((named[1], f"{block[0]}\n"))
    return found


def _unreadable(path: str, line: int, error: yaml.YAMLError) -> Problem:
    mark = getattr(error, "problem_mark", None)
    what = getattr(error, "problem", None) or error
    return Problem(path, line + (mark.line if mark else 0), f"not valid YAML: {what}")


def _breaches(root: Path, kind: str, data: Any) -> list[str]:
    schema, validator = _schema(root / "config" / "schemas" / f"{kind}.schema.yaml")
    # Thousands of notes are read at once, and nearly all are right.
    return [] if validator.is_valid(data) else problems(data, schema)


@cache
def _schema(path: Path) -> tuple[dict[str, Any], Draft202012Validator]:
    # Loaded when a file has changed: a recall that finds none starts 0.1 s sooner.
    from jsonschema import Draft202012Validator

    schema: dict[str, Any] = read_yaml(path)
    return schema, Draft202012Validator(schema)
