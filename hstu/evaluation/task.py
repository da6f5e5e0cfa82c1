"""What is asked of a scorer and what only the judge knows: histories, targets, seen items."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from hstu.data.errors import ExitCode, HstuError
from hstu.data.histories import HistoryTable
from hstu.data.items import Items
from hstu.data.readers import Interactions
from hstu.data.split import check_split, read_events
from hstu.evaluation.metrics import ranks
from hstu.evaluation.results import Sample

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from numpy.typing import NDArray

    from hstu.data.split import Target

# The parts that a user's history is made of, by target.
_HISTORY = {"validation": ("train",), "test": ("train", "validation")}


@dataclass(frozen=True, eq=False)
class Questions:
    """What to rank for U users over X items; no evaluation by itself.

    ``target`` says which held-out event the targets are; "earlier" ones lie before it in the
    history. ``targets`` int64 [U] and ``seen_items`` int64 [S] are item numbers 0 .. X - 1;
    ``seen_items[seen_offsets[u]:seen_offsets[u + 1]]`` are user u's seen items, each once.
    ``split`` is the digest of the split.
    """

    target: Target | Literal["earlier"]
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

    def take(self, rows: NDArray[np.int64]) -> Questions:
        """The questions of some users, by their places in ascending order."""
        offsets, places = _gathered(self.histories.offsets, rows)
        histories = HistoryTable(
            self.histories.user_ids[rows],
            offsets,
            self.histories.item_ids[places],
            self.histories.timestamps[places],
            self.histories.request_timestamps[rows],
        )
        seen_offsets, seen_places = _gathered(self.seen_offsets, rows)
        return replace(
            self,
            histories=histories,
            targets=self.targets[rows],
            seen_offsets=seen_offsets,
            seen_items=self.seen_items[seen_places],
        )

    def earlier(self, steps: int) -> Questions:
        """The questions whose targets are ``steps`` events before these ones.

        Histories and seen items are those before the earlier target. Every user must have more
        than ``steps`` events of history (see ``take``).
        """
        lengths = np.diff(self.histories.offsets) - steps
        if lengths.min() < 1:
            raise ValueError(f"a user has no more than {steps} events of history")
        places = _spans(self.histories.offsets[:-1], lengths)
        asked = self.histories.offsets[1:] - steps
        histories = HistoryTable(
            self.histories.user_ids,
            np.concatenate([[0], np.cumsum(lengths)]),
            self.histories.item_ids[places],
            self.histories.timestamps[places],
            self.histories.timestamps[asked],
        )
        seen_offsets, seen_items = _seen(histories, self.items)
        targets = self.items.index(self.histories.item_ids[asked]) - 1
        return Questions(
            "earlier", self.split, self.items, histories, targets, seen_offsets, seen_items
        )


@dataclass(frozen=True)
class CanonicalTask:
    """The canonical evaluation: all users of the split, the full corpus."""

    questions: Questions


@dataclass(frozen=True)
class SubsetTask:
    """A fast and labelled look at some users of the split; ``population`` is how many it has."""

    questions: Questions
    sample: Sample
    population: int


def read_task(split: Path, target: Target) -> CanonicalTask:
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
    questions = Questions(
        target, manifest["digest"], items, histories, targets, seen_offsets, seen_items
    )
    return CanonicalTask(questions)


def sampled(task: CanonicalTask, count: int, seed: int) -> SubsetTask:
    """A subset of ``count`` users, drawn with ``seed``; a larger draw holds the smaller ones."""
    population = len(task.questions)
    _refuse_all(count, population)
    # Integers of PCG64 are the same everywhere, which the draws of `choice` are not.
    keys = np.random.Generator(np.random.PCG64(seed)).integers(2**63, size=population)
    rows = np.sort(np.argsort(keys, kind="stable")[:count])
    return _subset(task, rows, seed)


def selected(task: CanonicalTask, users: NDArray[np.int64]) -> SubsetTask:
    """The subset of the named ``users`` (ids); each must be one of the split, named once."""
    known = task.questions.histories.user_ids
    wanted, counts = np.unique(users, return_counts=True)
    strange = np.setdiff1d(wanted, known)
    if len(strange) or (counts > 1).any():
        one = strange[0] if len(strange) else wanted[counts > 1][0]
        raise HstuError(f"user {one} is not one of the split's, or is named twice")
    _refuse_all(len(wanted), len(known))
    return _subset(task, np.searchsorted(known, wanted), None)


def read_users(path: Path) -> NDArray[np.int64]:
    """User ids [U] of a text file, one a line, in its order."""
    try:
        return np.array([int(line) for line in path.read_text().split()], dtype=np.int64)
    except FileNotFoundError:
        raise HstuError("file is missing", where=str(path)) from None
    except (ValueError, OverflowError) as error:
        raise HstuError(f"not a user id a line: {error}", where=str(path)) from error


def _refuse_all(count: int, population: int) -> None:
    if not 1 <= count < population:
        raise HstuError(
            f"a subset has 1 to {population - 1} of the split's {population} users, not {count}",
            hint="leave the choice of users out for the canonical evaluation",
            exit_code=ExitCode.USAGE,
        )


def _subset(task: CanonicalTask, rows: NDArray[np.int64], seed: int | None) -> SubsetTask:
    questions = task.questions.take(rows)
    sample = Sample.of(questions.histories.user_ids, seed)
    return SubsetTask(questions, sample, len(task.questions))


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


def _spans(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """The places ``start .. start + length - 1`` of every span, one after another."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    places: NDArray[np.int64] = np.arange(total) + np.repeat(starts - (ends - lengths), lengths)
    return places


def _gathered(
    offsets: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """New offsets [len(rows) + 1] and the places of what the rows had."""
    lengths = np.diff(offsets)[rows]
    return np.concatenate([[0], np.cumsum(lengths)]), _spans(offsets[rows], lengths)


def _seen(histories: HistoryTable, items: Items) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Offsets [U + 1] and item numbers of each user's seen items, each once."""
    size = len(items)
    user = np.repeat(np.arange(len(histories)), np.diff(histories.offsets))
    pairs = np.unique(user * size + items.index(histories.item_ids) - 1)
    counts = np.bincount(pairs // size, minlength=len(histories))
    return np.concatenate([[0], np.cumsum(counts)]), pairs % size
