"""A map that is never changed: setting a key makes a new one that shares what is equal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from immutables import Map

K = TypeVar("K")
V = TypeVar("V")
# The last key that was new, after those before it: a list that is never copied.
_Keys = tuple[Any, Any] | None


class Ordered(Mapping[K, V]):
    """Keys in the order in which they were first set. ``set`` and look-ups cost O(log n).

    ``get`` is that of the map inside: it is asked several times for every event of a trace.
    """

    __slots__ = ("_last", "_values", "get")

    def __init__(self, values: Map[K, V] | None = None, last: _Keys = None) -> None:
        self._values: Map[K, V] = Map() if values is None else values
        self._last = last
        self.get = self._values.get  # type: ignore[method-assign]

    @classmethod
    def of(cls, entries: Sequence[tuple[K, V]]) -> Ordered[K, V]:
        """The map of ``entries``, whose keys differ, in their order."""
        last: _Keys = None
        for key, _ in entries:
            last = (last, key)
        return cls(Map(entries), last)

    def set(self, key: K, value: V) -> Ordered[K, V]:
        """The same map with ``key`` at ``value``; a known key keeps its place."""
        last = self._last if key in self._values else (self._last, key)
        return Ordered(self._values.set(key, value), last)

    def __getitem__(self, key: K) -> V:
        return self._values[key]

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[K]:
        keys: list[K] = []
        last = self._last
        while last is not None:
            last, key = last
            keys.append(key)
        return reversed(keys)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Ordered({dict(self)!r})"
