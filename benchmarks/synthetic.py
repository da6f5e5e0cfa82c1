"""Seeded events in flat arrays, as fast to make as numpy draws them.

Imports nothing but numpy: a peer's environment makes the same events, and ``digest`` proves it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

LENGTHS = ("full", "ml1m")
# MovieLens-1M: events of a user are log-normal with this median and spread, 19 at least.
_MEDIAN, _SPREAD, _LEAST, _LONGEST = 96, 1.04, 19, 200
# Seconds between two events: bursts of minutes with pauses of weeks.
_LOG_GAP, _LOG_GAP_SPREAD = 4.0, 3.0


@dataclass(frozen=True, eq=False)
class Events:
    """Histories of U users with the event that follows each.

    User u's history is ``offsets[u]:offsets[u + 1]`` of ``items`` (indices 1 .. X) and
    ``timestamps`` (seconds), both int64 [E]; ``targets`` and ``request_timestamps`` are int64 [U].
    """

    offsets: NDArray[np.int64]
    items: NDArray[np.int64]
    timestamps: NDArray[np.int64]
    targets: NDArray[np.int64]
    request_timestamps: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def mib(self) -> float:
        """MiB of the arrays."""
        return float(sum(array.nbytes for array in vars(self).values()) / 2**20)

    def first(self, users: int) -> Events:
        """The events of the first ``users``; the arrays are views."""
        end = self.offsets[users]
        return Events(
            self.offsets[: users + 1],
            self.items[:end],
            self.timestamps[:end],
            self.targets[:users],
            self.request_timestamps[:users],
        )

    @property
    def digest(self) -> str:
        """Equal for equal events."""
        found = hashlib.sha256()
        for array in vars(self).values():
            found.update(array.tobytes())
        return found.hexdigest()[:16]


def make_events(
    users: int, items: int, *, lengths: str, history_length: int, seed: int = 1
) -> Events:
    """Events of ``users`` over ``items``; ``lengths`` is ``full`` or ``ml1m``.

    Where ``history_length`` is not 200, the lengths of ``ml1m`` shrink with it.
    """
    draw = np.random.Generator(np.random.PCG64(seed))
    counts = np.full(users, history_length)
    if lengths == "ml1m":
        drawn = draw.lognormal(np.log(_MEDIAN), _SPREAD, users).clip(_LEAST, _LONGEST)
        counts = (drawn * history_length / _LONGEST).astype(np.int64).clip(1)
    ends = np.cumsum(counts + 1)
    gaps = draw.lognormal(_LOG_GAP, _LOG_GAP_SPREAD, int(ends[-1])).astype(np.int64)
    all_items, all_times = draw.integers(1, items + 1, len(gaps)), np.cumsum(gaps)
    history = np.ones(len(gaps), np.bool_)
    history[ends - 1] = False
    return Events(
        offsets=np.concatenate([[0], np.cumsum(counts)]),
        items=all_items[history],
        timestamps=all_times[history],
        targets=all_items[ends - 1],
        request_timestamps=all_times[ends - 1],
    )
