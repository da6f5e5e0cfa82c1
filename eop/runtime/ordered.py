"""A map that is never changed: setting a key makes a new one that shares what is equal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from immutables import Map

K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")


class Ordered(Mapping[K, V]):
    """Keys in the order in which they were first set. ``set`` and look-ups cost O(log n)."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Map[K, tuple[int, V]] | None = None) -> None:
        self._entries: Map[K, tuple[int, V]] = Map() if entries is None else entries

    def set(self, key: K, value: V) -> Ordered[K, V]:
        """The same map with ``key`` at ``value``; a known key keeps its place."""
        known = self._entries.get(key)
        place = len(self._entries) if known is None else known[0]
        return Ordered(self._entries.set(key, (place, value)))

    def __getitem__(self, key: K) -> V:
        return self._entries[key][1]

    def get(self, key: K, default: D | None = None) -> V | D | None:  # type: ignore[override]
        """The value at ``key``, or ``default``."""
        entry = self._entries.get(key)
        return default if entry is None else entry[1]

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[K]:
        return iter(sorted(self._entries, key=self._place))

    def __len__(self) -> int:
        return len(self._entries)

    def _place(self, key: K) -> int:
        return self._entries[key][0]

    def __repr__(self) -> str:
        return f"Ordered({dict(self)!r})"
