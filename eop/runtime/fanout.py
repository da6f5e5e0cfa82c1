"""The list artifact that opens branches: written by an agent, so nothing in it is believed."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from eop.runtime.reduce import branch_names

if TYPE_CHECKING:
    from pathlib import Path

    from eop.protocol.model import FanOut

_SLUG = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,62}[a-z0-9])?")
_MOST_BRANCHES = 99
_TITLE_CHARS = 200


def read_branches(path: Path, fan_out: FanOut) -> dict[str, str]:
    """Titles of the items by branch name (``p01``, ...), in the list's order.

    Raises ``ValueError`` with a readable reason unless the file is a JSON list of at most
    ``fan_out.max`` objects with a unique slug ``id`` and a one-line ``title``.
    """
    try:
        items = json.loads(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"'{fan_out.artifact}' is not JSON: {error}") from None
    if not isinstance(items, list):
        raise ValueError(f"'{fan_out.artifact}' is not a list")
    most = min(fan_out.max, _MOST_BRANCHES)
    if len(items) > most:
        raise ValueError(f"'{fan_out.artifact}' has {len(items)} items, at most {most} are allowed")
    seen: set[str] = set()
    titles = [_title(fan_out, number, item, seen) for number, item in enumerate(items, start=1)]
    return dict(zip(branch_names(len(titles)), titles, strict=True))


def _title(fan_out: FanOut, number: int, item: Any, seen: set[str]) -> str:
    place = f"'{fan_out.artifact}', item {number}"
    if not isinstance(item, dict):
        raise ValueError(f"{place}: not an object")
    name, title = item.get("id"), item.get("title")
    if not isinstance(name, str) or not _SLUG.fullmatch(name):
        raise ValueError(f"{place}: 'id' must be a slug such as 'genre-bias', not {name!r}")
    if name in seen:
        raise ValueError(f"{place}: the id '{name}' is there twice")
    seen.add(name)
    fits = isinstance(title, str) and 0 < len(title) <= _TITLE_CHARS and title.isprintable()
    if not fits or not str(title).strip():
        raise ValueError(f"{place}: 'title' must be one line of 1 to {_TITLE_CHARS} characters")
    return str(title)
