"""Histories and training rows as padded tensors.

B users, W the longest history among them. Item index 0 is padding, on the right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from hstu.data.errors import HstuError
from hstu.data.files import read_integers

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from hstu.data.items import Items

_COLUMNS = ["user_id", "item_id", "timestamp"]


class History(NamedTuple):
    """What is known of one user when a recommendation is asked for.

    ``item_index`` [m] holds item indices (1 and up) and ``timestamps`` [m] seconds, oldest first.
    ``request_timestamp`` is the moment of the request, in seconds.
    """

    item_index: NDArray[np.int64]
    timestamps: NDArray[np.int64]
    request_timestamp: int


class Batch(NamedTuple):
    """Histories of B users, padded on the right to the longest."""

    items: Tensor
    """[B, W] int64 item index, 0 in padding."""
    timestamps: Tensor
    """[B, W] int64 seconds."""
    next_timestamps: Tensor
    """[B, W] int64 seconds of the event after each; the request's for the last one."""
    lengths: Tensor
    """[B] int64, at least 1."""

    @property
    def width(self) -> int:
        """W."""
        return self.items.shape[1]

    @property
    def valid(self) -> Tensor:
        """[B, W] bool, true where there is an event."""
        place = torch.arange(self.width, device=self.items.device)
        return place < self.lengths[:, None]

    def to(self, device: torch.device) -> Batch:
        """The same batch on ``device``."""
        return Batch._make(tensor.to(device) for tensor in self)


class TrainingBatch(NamedTuple):
    """Inputs and what follows each of their events."""

    inputs: Batch
    targets: Tensor
    """[B, W] int64 item index of the next event, 0 in padding."""
    tails: Tensor | None = None
    """[B] int64: how many of a row's newest events count in the loss; ``None`` is all of them."""

    def to(self, device: torch.device) -> TrainingBatch:
        """The same batch on ``device``."""
        tails = None if self.tails is None else self.tails.to(device)
        return TrainingBatch(self.inputs.to(device), self.targets.to(device), tails)


def collate(histories: Sequence[History], *, history_length: int) -> Batch:
    """Pad histories, the newest ``history_length`` events of each.

    Raises ``HstuError`` for an empty history: no query could be formed from it.
    """
    lengths = [min(len(history.item_index), history_length) for history in histories]
    if 0 in lengths:
        raise HstuError(
            "a history without events cannot be scored",
            where=f"history {lengths.index(0)} of the batch",
            hint="leave out users who have no event before the request",
        )
    shape = (len(histories), max(lengths))
    items, times, nexts = (np.zeros(shape, np.int64) for _ in range(3))
    for row, (history, length) in enumerate(zip(histories, lengths, strict=True)):
        stamps = np.append(history.timestamps[-length:], history.request_timestamp)
        items[row, :length] = history.item_index[-length:]
        times[row, :length] = stamps[:-1]
        nexts[row, :length] = stamps[1:]
    padded = [torch.from_numpy(array) for array in (items, times, nexts)]
    return Batch._make([*padded, torch.tensor(lengths)])


@dataclass(frozen=True)
class TrainingRows:
    """One row a user: all training events but the last are its history, the last its target.

    ``tails`` [rows] says how many of a row's newest events count in the loss, where not all do.
    """

    histories: list[History]
    targets: NDArray[np.int64]
    history_length: int
    tails: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.histories)

    @classmethod
    def read(
        cls, data: Path, items: Items, *, history_length: int, parts: Sequence[str] = ("train",)
    ) -> TrainingRows:
        """Read ``data/<part>.parquet`` (user_id, item_id, timestamp; stable time order per user).

        The parts follow each other in time. A user with a single event has nothing to predict and
        no row. Raises ``HstuError`` where an event of a user is earlier than the one before it:
        training would learn to predict the past.
        """
        paths = [data / f"{part}.parquet" for part in parts]
        columns = zip(*(read_integers(path, _COLUMNS) for path in paths), strict=True)
        users, ids, stamps = (np.concatenate(column) for column in columns)
        order = np.argsort(users, kind="stable")
        users, index, stamps = users[order], items.index(ids[order]), stamps[order]
        _refuse_disorder(users, stamps, where=str(data))
        bounds = np.flatnonzero(np.diff(users)) + 1
        spans = zip([0, *bounds], [*bounds - 1, len(order) - 1], strict=True)
        kept = [(start, last) for start, last in spans if last > start]
        if not kept:
            raise HstuError("no user has two training events", where=str(paths[0]))
        histories = [History(index[a:b], stamps[a:b], int(stamps[b])) for a, b in kept]
        return cls(histories, index[[last for _, last in kept]], history_length)

    def batch(self, rows: Sequence[int]) -> TrainingBatch:
        """Rows as tensors; every event's target is the event after it."""
        inputs = collate([self.histories[row] for row in rows], history_length=self.history_length)
        targets = torch.zeros_like(inputs.items)
        targets[:, :-1] = inputs.items[:, 1:]
        last = inputs.lengths - 1
        chosen = np.asarray(rows)
        targets[torch.arange(len(rows)), last] = torch.from_numpy(self.targets[chosen])
        tails = None if self.tails is None else torch.from_numpy(self.tails[chosen])
        return TrainingBatch(inputs, targets, tails)

    def alike(self, rows: Sequence[int], count: int) -> list[list[int]]:
        """The same rows in up to ``count`` parts of like length, which wastes less padding."""
        by_length = sorted(rows, key=lambda row: len(self.histories[row].item_index))
        size = -(-len(by_length) // count)
        return [by_length[at : at + size] for at in range(0, len(by_length), size)]

    def groups(self, rows: Sequence[int], count: int) -> list[TrainingBatch]:
        """A batch for each of the parts that ``alike`` makes."""
        return [self.batch(part) for part in self.alike(rows, count)]


def _refuse_disorder(users: NDArray[np.int64], stamps: NDArray[np.int64], where: str) -> None:
    """Raise ``HstuError`` unless the events of each user, which are together, are in time order."""
    back = np.flatnonzero((users[1:] == users[:-1]) & (stamps[1:] < stamps[:-1]))
    if len(back):
        raise HstuError(
            f"the events of user {users[back[0]]} are not in the order of time",
            where=where,
            hint="make the split with: hstu data split --source DIR --out DIR",
        )
