"""What differs between two versions of a text, in a few lines that a person can read."""

from __future__ import annotations

import difflib
import json
from typing import Any

from eop.runtime.gates import visible

_LINES = 60
_WIDTH = 200
_COMPARED_LINES = 1000
# Beyond this a float no longer tells neighbouring integers apart.
_EXACT = 2**53
_VALUE_WIDTH = 80


def changes(before: str, after: str) -> list[str]:
    """At most 61 lines of at most 200 visible characters; empty when nothing differs.

    Lists of objects with an ``id`` are compared item by item, other JSON value by value, anything
    else line by line. Deterministic.
    """
    if before == after:
        return []
    old, new = _json(before), _json(after)
    if old is None or new is None:
        lines = _text_changes(visible(before), visible(after))
    elif (was := _items(old)) is not None and (now := _items(new)) is not None:
        lines = _item_changes(was, now)
    else:
        lines = _value_changes(_leaves(old), _leaves(new))
    return _bounded(lines or ["only the order or the spacing differs"])


def _bounded(lines: list[str]) -> list[str]:
    shown = [_short(visible(line).replace("\n", " "), _WIDTH) for line in lines[:_LINES]]
    more = len(lines) - _LINES
    return [*shown, f"... and {more} more lines"] if more > 0 else shown


def _short(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 4]} ..."


def _json(text: str) -> Any:
    """An object or a list, ``None`` for any other text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


def _items(value: Any) -> dict[str, dict[str, Any]] | None:
    """The objects of a list by their ``id``, ``None`` when that is not what it is."""
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        return None
    items = {item["id"]: item for item in value if isinstance(item.get("id"), str)}
    return items if len(items) == len(value) else None


def _item_changes(old: dict[str, dict[str, Any]], new: dict[str, dict[str, Any]]) -> list[str]:
    lines = [f"- {_title(item)}" for name, item in old.items() if name not in new]
    lines += [f"+ {_title(item)}" for name, item in new.items() if name not in old]
    same = 0
    for name, item in new.items():
        if name in old:
            differing = _value_changes(_leaves(old[name]), _leaves(item))
            same += not differing
            lines += [f"~ {_title(item)}", *(f"    {d}" for d in differing)] if differing else []
    return [*lines, f"= {same} unchanged"] if lines and same else lines


def _title(item: dict[str, Any]) -> str:
    title = item.get("title")
    return f"{item['id']}: {title}" if isinstance(title, str) else str(item["id"])


def _leaves(value: Any) -> dict[str, Any]:
    """Every value that holds no other by its path (``a.b[0]``), in the order of the text."""
    found: dict[str, Any] = {}
    waiting: list[tuple[str, Any]] = [("", value)]
    while waiting:
        path, here = waiting.pop()
        if isinstance(here, dict) and here:
            dot = f"{path}." if path else ""
            waiting += [(f"{dot}{key}", one) for key, one in reversed(here.items())]
        elif isinstance(here, list) and here:
            waiting += [(f"{path}[{i}]", one) for i, one in reversed(list(enumerate(here)))]
        else:
            found[path] = here
    return found


def _value_changes(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    lines = []
    for path in dict.fromkeys([*old, *new]):
        was, now = (_word(side[path]) if path in side else "(none)" for side in (old, new))
        if was != now:
            delta = _delta(old.get(path), new.get(path))
            lines.append(
                f"{path}: {_short(was, _VALUE_WIDTH)} -> {_short(now, _VALUE_WIDTH)}{delta}"
            )
    return lines


def _word(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _delta(old: Any, new: Any) -> str:
    numbers = [x for x in (old, new) if isinstance(x, int | float) and not isinstance(x, bool)]
    if len(numbers) < 2 or not all(abs(x) < _EXACT for x in numbers):
        return ""
    return f" ({new - old:+.6g})"


def _text_changes(before: str, after: str) -> list[str]:
    old, new = before.split("\n"), after.split("\n")
    if max(len(old), len(new)) > _COMPARED_LINES:
        return [f"more than {_COMPARED_LINES} lines: compare the two files"]
    return list(difflib.unified_diff(old, new, n=1, lineterm=""))[2:]
