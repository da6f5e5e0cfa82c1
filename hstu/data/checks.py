"""What a raw data set must be before it is split: no event twice, enough events a user."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hstu.data.errors import HstuError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from hstu.data.readers import Interactions

MIN_EVENTS = 3


def repeated_events(interactions: Interactions) -> NDArray[np.int64]:
    """Rows, ascending, that equal an earlier row in user, item and timestamp."""
    columns = (interactions.timestamps, interactions.items, interactions.users)
    order = np.lexsort(columns)
    same = np.ones(max(len(order) - 1, 0), dtype=np.bool_)
    for column in columns:
        ordered = column[order]
        same &= ordered[1:] == ordered[:-1]
    return np.sort(order[1:][same])


def refuse_repeated_events(interactions: Interactions, place: Callable[[int], str]) -> None:
    """Raise ``HstuError`` when an event occurs twice; ``place`` names the line of a row."""
    rows = repeated_events(interactions)
    if not len(rows):
        return
    raise HstuError(
        f"{len(rows)} duplicate rows (same user_id, item_id and timestamp as an earlier row)",
        where=place(int(rows[0])),
        hint="remove them, or keep them with --allow-duplicates",
    )


def drop_short_users(interactions: Interactions) -> tuple[Interactions, NDArray[np.int64]]:
    """The events of users with at least three, and the ids of the other users, ascending."""
    users, inverse, counts = np.unique(interactions.users, return_inverse=True, return_counts=True)
    enough = counts >= MIN_EVENTS
    if enough.all():
        return interactions, users[:0]
    if not enough.any():
        raise HstuError(f"no user has {MIN_EVENTS} events")
    return interactions.take(enough[inverse]), users[~enough]


def refuse_short_users(interactions: Interactions, place: Callable[[int], str]) -> None:
    """Raise ``HstuError`` when a user has fewer than three events.

    One each is needed to train on, to validate on and to test on.
    """
    users, counts = np.unique(interactions.users, return_counts=True)
    short = users[counts < MIN_EVENTS]
    if not len(short):
        return
    first = ", ".join(str(user) for user in short[:5].tolist())
    raise HstuError(
        f"{len(short)} of {len(users)} users have fewer than {MIN_EVENTS} events, first: {first}",
        where=place(int(np.flatnonzero(interactions.users == short[0])[0])),
        hint="leave them out with --drop-short-users",
    )
