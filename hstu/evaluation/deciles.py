"""Metrics by how popular the target item is: who pays for a gain, the head or the tail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hstu.data.errors import HstuError
from hstu.data.items import Items
from hstu.data.split import check_split, read_events
from hstu.evaluation.intervals import Interval, mean_interval
from hstu.evaluation.metrics import contributions

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from hstu.data.split import Target
    from hstu.evaluation.rank_files import CanonicalRanks

DECILES = 10


@dataclass(frozen=True, eq=False)
class TargetDeciles:
    """The popularity decile, 1 (least) to 10 (most), of each user's target item.

    ``users`` int64 [U] ascending, ``deciles`` int64 [U]; ``items`` [10] says how many items of the
    corpus are of each decile; ``split`` is the split's digest.
    """

    target: Target
    split: str
    users: NDArray[np.int64]
    deciles: NDArray[np.int64]
    items: NDArray[np.int64]

    def of(self, users: NDArray[np.int64]) -> NDArray[np.int64]:
        """The deciles of some of the users, in their order."""
        place = np.searchsorted(self.users, users)
        if not np.array_equal(self.users[np.minimum(place, len(self.users) - 1)], users):
            raise HstuError("the ranks are of users that the split does not have")
        return self.deciles[place]


def item_deciles(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Decile 1..10 of each item [X] by its training events ``counts`` [X].

    It goes by the share of items with fewer events, so that items with equal counts are together
    and a decile may be empty.
    """
    fewer = np.searchsorted(np.sort(counts), counts, side="left")
    deciles: NDArray[np.int64] = 1 + DECILES * fewer // len(counts)
    return deciles


def target_deciles(split: Path, target: Target) -> TargetDeciles:
    """Read the deciles of a split's targets; popularity is that of the training events alone."""
    names = ["train.parquet", "items.parquet", f"{target}.parquet"]
    manifest = check_split(split, names)
    items = Items.read(split / "items.parquet")
    held_out = read_events(split, target)
    by_item = item_deciles(items.count([split / "train.parquet"]))
    deciles = by_item[items.index(held_out.items) - 1]
    sizes = np.bincount(by_item - 1, minlength=DECILES)
    return TargetDeciles(target, manifest["digest"], held_out.users, deciles, sizes)


@dataclass(frozen=True, kw_only=True)
class PopularityRow:
    """Users whose target item is of one decile: their number and metrics, mean over seeds.

    ``items`` of the corpus are of the decile. ``None``: there are too few users.
    """

    decile: int
    items: int
    users: int
    metrics: dict[str, Interval]


def popularity_report(
    seeds: Sequence[CanonicalRanks], deciles: TargetDeciles, metrics: Sequence[str]
) -> list[PopularityRow]:
    """Metrics of a model by decile; ``seeds`` are ranks of the same users, split and target."""
    first = seeds[0]
    for ranks in seeds:
        if (ranks.split, ranks.target) != (deciles.split, deciles.target):
            raise HstuError("the ranks are of another split or target", hint="name that split")
        if not np.array_equal(ranks.users, first.users):
            raise HstuError("the seeds do not rank the same users")
    of_user = deciles.of(first.users)
    values = {
        name: np.mean([contributions(name, r.ranks, r.corpus) for r in seeds], axis=0)
        for name in metrics
    }
    return [
        PopularityRow(
            decile=decile,
            items=int(deciles.items[decile - 1]),
            users=int((of_user == decile).sum()),
            metrics={k: mean_interval(v[of_user == decile]) for k, v in values.items()},
        )
        for decile in range(1, DECILES + 1)
    ]
