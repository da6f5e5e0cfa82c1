"""Which rows of the leaderboard are asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, time
from typing import TYPE_CHECKING

from eop.leaderboard.standing import standing

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import date

    from eop.leaderboard.entry import Entry


@dataclass(frozen=True)
class Selection:
    """All that is given must hold; nothing given selects every row.

    ``standings``: any of ``STANDINGS``. ``since``: recorded on that day (UTC) or later; rows of
    versions that recorded no time are not among those.
    """

    run: str | None = None
    dataset: str | None = None
    standings: frozenset[str] = frozenset()
    since: date | None = None

    def of(self, entries: Iterable[Entry]) -> list[Entry]:
        """The rows that are asked for, in the order given."""
        return [entry for entry in entries if self._takes(entry)]

    def undated(self, entries: Iterable[Entry]) -> int:
        """How many rows ``since`` leaves out for want of a time."""
        if self.since is None:
            return 0
        anytime = replace(self, since=None)
        return sum(recorded(entry) is None for entry in anytime.of(entries))

    def _takes(self, entry: Entry) -> bool:
        at = recorded(entry)
        return (
            self.run in (None, entry.run)
            and self.dataset in (None, entry.evidence["split"]["dataset"])
            and (not self.standings or standing(entry) in self.standings)
            and (self.since is None or (at is not None and at >= _start_of(self.since)))
        )


def recorded(entry: Entry) -> datetime | None:
    """When the row was recorded, UTC; ``None`` for rows of versions that did not say."""
    text = entry.evidence.get("recorded")
    return datetime.fromisoformat(text) if text else None


def _start_of(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
