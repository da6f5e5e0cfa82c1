"""The things that knowledge is about: ``knowledge/entities.yaml``, written by people."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

from eop.core.errors import EopError, ExitCode, Where
from eop.core.yaml_files import read_yaml

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from pathlib import Path

FILE = "knowledge/entities.yaml"
KINDS = ("model", "feature", "dataset", "fault", "intervention")
RELATIONS = ("changes", "uses", "risks", "part_of", "has")
_ID = re.compile(rf"(?:{'|'.join(KINDS)}):[a-z0-9][a-z0-9_.-]*", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class Entity:
    """One thing: its other ``names``, the settings and files by which a change is about it.

    ``settings`` and ``paths`` count with all that lies below them. ``relations`` are typed edges.
    """

    id: str
    names: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    relations: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Registry:
    """All entities, by id."""

    entities: Mapping[str, Entity] = field(default_factory=dict)

    def touched(self, settings: Collection[str], paths: Collection[str]) -> list[str]:
        """Ids of what a change of these settings and files is about, sorted."""
        return sorted(
            entity.id
            for entity in self.entities.values()
            if any(_below(key, top, ".") for key in settings for top in entity.settings)
            or any(_below(path, top, "/") for path in paths for top in entity.paths)
        )

    def named(self, text: str) -> list[str]:
        """Ids of what a text calls by name, in whole words and in any case, sorted."""
        words = f" {' '.join(_words(text))} "
        return sorted(
            entity.id
            for entity in self.entities.values()
            if any(f" {' '.join(_words(name))} " in words for name in entity.names)
        )


def read_registry(root: Path) -> Registry:
    """The project's entities; none without the file. EOP681 lists what is wrong with it."""
    path = root / FILE
    if not path.is_file():
        return Registry()
    try:
        data = read_yaml(path)
    except yaml.YAMLError as error:
        raise _malformed([str(error)]) from error
    wrong = list(_problems(data))
    if wrong:
        raise _malformed(wrong)
    return Registry({name: _entity(name, given or {}) for name, given in data["entities"].items()})


def _entity(name: str, given: Mapping[str, Any]) -> Entity:
    lists = {key: tuple(map(str, given.get(key, ()))) for key in ("names", "settings", "paths")}
    pairs = tuple((relation, end) for relation in RELATIONS for end in given.get(relation, ()))
    return Entity(name, **lists, relations=pairs)


def _problems(data: Any) -> Iterable[str]:
    if not isinstance(data, dict) or set(data) != {"entities"}:
        yield "it must hold one key, 'entities'"
        return
    known = data["entities"]
    if not isinstance(known, dict):
        yield "entities: must be a mapping of ids"
        return
    allowed = {"names", "settings", "paths", *RELATIONS}
    for name, given in known.items():
        if not isinstance(name, str) or not _ID.fullmatch(name):
            yield f"{name}: an id is one of {', '.join(KINDS)}, a colon and a name"
        for key, value in (given or {}).items():
            if key not in allowed:
                yield f"{name}.{key}: unknown key; known: {', '.join(sorted(allowed))}"
            elif not isinstance(value, list):
                yield f"{name}.{key}: must be a list"
            elif key in RELATIONS:
                for end in value:
                    if end not in known:
                        yield f"{name}.{key}: '{end}' is no entity of this file"


def _malformed(wrong: list[str]) -> EopError:
    return EopError(
        "EOP681",
        "not a list of entities:\n  " + "\n  ".join(wrong),
        where=Where(FILE),
        hint="docs/knowledge.md says what an entity holds",
        exit_code=ExitCode.DATA,
    )


def _below(name: str, top: str, separator: str) -> bool:
    return name == top or name.startswith(top.rstrip(separator) + separator)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())
