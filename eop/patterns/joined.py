"""Lists of several workers as one: pure, and the same whoever was first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eop.core.canonical import canonical_json

if TYPE_CHECKING:
    from collections.abc import Sequence


def join(lists: Sequence[Sequence[Any]]) -> tuple[list[Any], list[list[str]]]:
    """The items in the order of the lists, the first of equal ones alone.

    Items with an ``id`` are equal when their ids are, others when they are the same. Also returns,
    for each list, the ids (or the JSON) of its items that an earlier one stands for.
    """
    items: list[Any] = []
    seen: set[str] = set()
    dropped: list[list[str]] = []
    for listed in lists:
        names = [_name(item) for item in listed]
        dropped.append([])
        for name, item in zip(names, listed, strict=True):
            if name in seen:
                dropped[-1].append(name)
            else:
                seen.add(name)
                items.append(item)
    return items, dropped


def _name(item: Any) -> str:
    if isinstance(item, dict) and isinstance(item.get("id"), str):
        return str(item["id"])
    return canonical_json(item).decode()
