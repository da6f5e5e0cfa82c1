"""A map that is never changed: setting a key makes a new one that shares what is equal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from immutables import Map

K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")


class Ordered(Mapping[K, V]):
    """Keys in the order in which they were first set. ``set`` and look-ups cost O(log n).

    ``get`` is that of the map inside: it is asked several times for every event of a trace.
    """

    __slots__ = ("_places", "_values", "get")

    def __init__(self, values: Map[K, V] | None = None, places: Map[K, int] | None = None) -> None:
        self._values: Map[K, V] = Map() if values is None else values
        self._places: Map[K, int] = Map() if places is None else places
        self.get = self._values.get  # type: ignore[method-assign]

    @classmethod
    def of(cls, entries: Sequence[tuple[K, V]]) -> Ordered[K, V]:
        """The map of ``entries``, whose keys differ, in their order."""
        return cls(Map(entries), Map((key, place) for place, (key, _) in enumerate(entries)))

    def set(self, key: K, value: V) -> Ordered[K, V]:
        """The same map with ``key`` at ``value``; a known key keeps its place."""
        places = self._places
        if key not in places:
            places = places.set(key, len(places))
        return Ordered(self._values.set(key, value), places)

    def __getitem__(self, key: K) -> V:
        return self._values[key]

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[K]:
        return iter(sorted(self._places, key=self._places.__getitem__))

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Ordered({dict(self)!r})"
