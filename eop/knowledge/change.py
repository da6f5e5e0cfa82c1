"""What a change touches, against what it was made to: settings and files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from eop.knowledge.conditions import flat

if TYPE_CHECKING:
    from collections.abc import Mapping

_CUT = "diff --git "


@dataclass(frozen=True)
class Change:
    """``settings``: key to (before, after), ``None`` for absent; ``paths``: files of the code.

    ``patch`` is the digest of the whole patch against the pinned snapshot, if there is one.
    """

    settings: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    paths: tuple[str, ...] = ()
    patch: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain data, in the order of a note."""
        settings = {key: list(pair) for key, pair in self.settings.items()}
        return {"settings": settings, "paths": list(self.paths), "patch": self.patch}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Change:
        """The inverse of ``to_json``."""
        settings = {key: (pair[0], pair[1]) for key, pair in data["settings"].items()}
        return cls(settings, tuple(data["paths"]), data["patch"])


def changed_settings(
    before: Mapping[str, Any] | None, after: Mapping[str, Any] | None
) -> dict[str, tuple[Any, Any]]:
    """Settings that differ, flat, by key; nothing where one of the configs is not known."""
    if before is None or after is None:
        return {}
    old, new = dict(flat(before, "")), dict(flat(after, ""))
    keys = sorted(old.keys() | new.keys())
    return {k: (old.get(k), new.get(k)) for k in keys if old.get(k) != new.get(k)}


def changed_paths(before: str, after: str) -> tuple[str, ...]:
    """Files that two patches against the same tree do not change alike, sorted."""
    old, new = _by_file(before), _by_file(after)
    return tuple(sorted(path for path in old.keys() | new.keys() if old.get(path) != new.get(path)))


def _by_file(patch: str) -> dict[str, str]:
    """A patch of git's cut at its files: path to the lines of its part, without blob ids."""
    parts: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in patch.splitlines():
        if line.startswith(_CUT):
            # `a/X b/X`: nothing is renamed, so the two halves differ in their first letter alone.
            names = line.removeprefix(_CUT)
            path = names[len(names) // 2 + 1 :].strip('"').removeprefix("b/")
            lines = parts.setdefault(path, [])
        elif not line.startswith("index "):
            lines.append(line)
    return {path: "\n".join(lines) for path, lines in parts.items()}
