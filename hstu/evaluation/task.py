"""What is asked of a scorer and what only the judge knows: histories, targets, seen items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hstu.data.errors import HstuError
from hstu.data.histories import HistoryTable
from hstu.data.items import Items
from hstu.data.readers import Interactions
from hstu.data.split import check_split, read_events
from hstu.evaluation.metrics import metrics, ranks

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from numpy.typing import NDArray

    from hstu.data.split import Target

# The parts that a user's history is made of, by target.
_HISTORY = {"validation": ("train",), "test": ("train", "validation")}


@dataclass(frozen=True, eq=False)
class Task:
    """An evaluation of U users over X items.

    ``targets`` int64 [U] and ``seen_items`` int64 [S] are item numbers 0 .. X - 1;
    ``seen_items[seen_offsets[u]:seen_offsets[u + 1]]`` are user u's seen items, each once.
    ``split`` is the digest of the split.
    """

    target: Target
    split: str
    items: Items
    histories: HistoryTable
    targets: NDArray[np.int64]
    seen_offsets: NDArray[np.int64]
    seen_items: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.histories)

    def ranks(self, chunks: Iterable[NDArray[np.float32]]) -> NDArray[np.int64]:
        """Ranks [U] from consecutive score chunks [b, X] that together have U rows."""
        done: list[NDArray[np.int64]] = []
        start = 0
        for scores in chunks:
            end = start + len(scores)
            first, last = self.seen_offsets[start], self.seen_offsets[end]
            lengths = np.diff(self.seen_offsets[start : end + 1])
            rows = np.repeat(np.arange(len(scores)), lengths)
            done.append(ranks(scores, self.targets[start:end], rows, self.seen_items[first:last]))
            start = end
        if start != len(self):
            raise HstuError(f"scores of {start} users, not of {len(self)}")
        return np.concatenate(done)


def read_task(split: Path, target: Target) -> Task:
    """Read the parts of a split that ``target`` needs, verified against the manifest."""
    parts = _HISTORY[target]
    needed = [f"{part}.parquet" for part in (*parts, target)]
    manifest = check_split(split, [*needed, "items.parquet"])
    items = Items.read(split / "items.parquet")
    events = _joined([read_events(split, part) for part in parts])
    held_out = read_events(split, target)
    histories = _histories(events, held_out, where=str(split / f"{target}.parquet"))
    seen_offsets, seen_items = _seen(histories, items)
    targets = items.index(held_out.items) - 1
    return Task(target, manifest["digest"], items, histories, targets, seen_offsets, seen_items)


def result(task: Task, rank: NDArray[np.int64]) -> dict[str, object]:
    """The content of ``metrics.json``."""
    return {
        "schema": "hstu.metrics/1",
        "target": task.target,
        "users": len(task),
        "corpus": len(task.items),
        "metrics": metrics(rank),
        "split": task.split,
    }


def _joined(parts: list[Interactions]) -> Interactions:
    """All events by user, within a user in the order of the parts."""
    users = np.concatenate([part.users for part in parts])
    items = np.concatenate([part.items for part in parts])
    times = np.concatenate([part.timestamps for part in parts])
    return Interactions(users, items, times).take(np.argsort(users, kind="stable"))


def _histories(events: Interactions, held_out: Interactions, where: str) -> HistoryTable:
    users, counts = np.unique(events.users, return_counts=True)
    if not np.array_equal(users, held_out.users):
        raise HstuError("its users are not those of the history, one event each", where=where)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    return HistoryTable(users, offsets, events.items, events.timestamps, held_out.timestamps)


def _seen(histories: HistoryTable, items: Items) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Offsets [U + 1] and item numbers of each user's seen items, each once."""
    size = len(items)
    user = np.repeat(np.arange(len(histories)), np.diff(histories.offsets))
    pairs = np.unique(user * size + items.index(histories.item_ids) - 1)
    counts = np.bincount(pairs // size, minlength=len(histories))
    return np.concatenate([[0], np.cumsum(counts)]), pairs % size
