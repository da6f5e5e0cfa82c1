"""Under which conditions something was seen, or is said to hold, and whether two of them meet.

Conditions are flat: a key such as ``dataset``, ``split``, ``base.model.dim`` (a setting of what the
change was made to) or ``change.model.dim`` (what the change set it to), and what it must be.
A value is literal; ``{min: a, max: b}`` is a closed range (either side may be left out) and
``{any: [a, b]}`` a choice. What is not named is open: it may be anything.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Conditions = Mapping[str, Any]


def flat(settings: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    """Nested settings as ``prefix.section.key`` and value; an empty section is a value, ``{}``."""
    for key, value in settings.items():
        name = f"{prefix}.{key}" if prefix else str(key)
        if isinstance(value, dict) and value:
            yield from flat(value, name)
        else:
            yield name, value


def meet(one: Conditions, other: Conditions) -> bool:
    """Whether both can hold at once: no key on which the two cannot agree."""
    return all(_compatible(one[key], other[key]) for key in one.keys() & other.keys())


def within(seen: Conditions, stated: Conditions) -> bool:
    """Whether what was seen lies in what is stated: each stated key was seen, and as stated."""
    return all(key in seen and _compatible(seen[key], value) for key, value in stated.items())


def _compatible(one: Any, other: Any) -> bool:
    if not isinstance(one, dict) and not isinstance(other, dict):
        return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)
    for value, against in ((one, other), (other, one)):
        if isinstance(value, dict) and value.keys() == {"any"}:
            return any(_compatible(item, against) for item in value["any"])
    mine, theirs = _range(one), _range(other)
    if mine is None or theirs is None:
        return bool(one == other)
    return max(mine[0], theirs[0]) <= min(mine[1], theirs[1])


def _range(value: Any) -> tuple[float, float] | None:
    """A number or a range as its two ends; ``None`` for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value, value
    if isinstance(value, dict) and value and value.keys() <= {"min", "max"}:
        return value.get("min", -math.inf), value.get("max", math.inf)
    return None
