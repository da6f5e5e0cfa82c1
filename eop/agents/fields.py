"""Typed reads from JSON that a product wrote: what has the wrong type is absent."""

from __future__ import annotations

from typing import Any

_MOST_TOKENS = 10**15


def mapping(data: Any, *keys: str) -> dict[str, Any]:
    """The object at a path of keys, else an empty one."""
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    return data if isinstance(data, dict) else {}


def objects(data: Any, key: str) -> list[dict[str, Any]]:
    """The objects of a list, without whatever else is in it."""
    found = data.get(key) if isinstance(data, dict) else None
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def text(data: Any, *keys: str) -> str:
    """The first of the keys that holds text, else an empty one."""
    found = (data.get(key) for key in keys) if isinstance(data, dict) else ()
    return next((value for value in found if isinstance(value, str)), "")


def count(data: Any, *keys: str) -> int | None:
    """The first of the keys that holds a number of things: an integer that is not negative."""
    found = [data.get(key) for key in keys] if isinstance(data, dict) else []
    return next((value for value in found if _is_count(value)), None)


def money(data: Any, key: str) -> float | None:
    """A sum in USD that is finite and not negative."""
    found = data.get(key) if isinstance(data, dict) else None
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    return float(found) if 0 <= found <= _MOST_TOKENS else None


def add(*counts: int | None) -> int | None:
    """The sum, unknown as soon as one part is."""
    known = [one for one in counts if one is not None]
    return sum(known) if len(known) == len(counts) else None


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS
