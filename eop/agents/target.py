"""The target: which paths make its snapshot and which of them agents may change."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from eop.core.errors import EopError, ExitCode, Where
from eop.core.schema import problems
from eop.core.yaml_files import read_yaml

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_PATHS: dict[str, Any] = {
    "type": "array",
    "minItems": 1,
    "items": {"type": "string", "pattern": r"^(?!/)(?!.*(^|/)\.\.(/|$)).+$"},
}
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["name", "snapshot", "editable"],
    "properties": {
        "name": {"type": "string", "pattern": "^[a-z][a-z0-9_-]*$"},
        "snapshot": _PATHS,
        "editable": _PATHS,
    },
}
_WILDCARD = re.compile(r"\*\*/|\*\*|\*|\?")
_MEANING = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


@dataclass(frozen=True)
class Target:
    """A repository part under evolution.

    ``snapshot`` lists the paths (relative to the project's root) that are pinned; ``editable``
    the globs of a workspace that a patch may touch. Everything else is protected.
    """

    name: str
    snapshot: tuple[str, ...]
    editable: tuple[str, ...]


def load(path: Path) -> Target:
    """Read ``config/targets/<name>.yaml``; ``EopError`` names the key that is wrong."""
    where = Where(str(path))
    try:
        data = read_yaml(path)
    except (OSError, yaml.YAMLError) as error:
        raise EopError(
            "EOP850", f"cannot read the target: {error}", where=where, exit_code=ExitCode.CONFIG
        ) from error
    wrong = problems(data, _SCHEMA)
    if wrong:
        raise EopError(
            "EOP850",
            "; ".join(wrong),
            where=where,
            hint="keys: name, snapshot, editable",
            exit_code=ExitCode.CONFIG,
        )
    return Target(data["name"], tuple(data["snapshot"]), tuple(data["editable"]))


def protected_changes(target: Target, changed: Iterable[str]) -> list[str]:
    """Those of the changed paths that no editable glob covers, sorted."""
    return outside(target.editable, changed)


def outside(editable: Iterable[str], changed: Iterable[str]) -> list[str]:
    """The paths that match none of the globs (``**`` crosses folders, ``*`` does not)."""
    patterns = [_regex(glob) for glob in editable]
    return sorted(path for path in changed if not any(p.fullmatch(path) for p in patterns))


def _regex(glob: str) -> re.Pattern[str]:
    parts, end = [], 0
    for match in _WILDCARD.finditer(glob):
        parts += [re.escape(glob[end : match.start()]), _MEANING[match.group()]]
        end = match.end()
    return re.compile("".join([*parts, re.escape(glob[end:])]), re.DOTALL)
