"""The corpus: item ids with title, genres and year, and the map from ids to dense indices."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hstu.data.errors import HstuError
from hstu.data.files import read_integers, read_table, write_table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import ArrayLike, NDArray

_COLUMNS = ["item_id", "title", "genres", "year"]


@dataclass(frozen=True, eq=False)
class Items:
    """All X candidate items, in file order; item ``ids[k]`` has the dense index ``k + 1``.

    ``ids`` int64 [X] unique; ``titles`` X strings ("" unknown); ``genres`` bool [X, G] over
    ``genre_names``; ``years`` int64 [X] (0 unknown). ``train_counts`` int64 [X] is how often each
    item occurs in the training data, ``None`` where those are not at hand.
    """

    ids: NDArray[np.int64]
    titles: tuple[str, ...]
    genres: NDArray[np.bool_]
    genre_names: tuple[str, ...]
    years: NDArray[np.int64]
    train_counts: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        size = len(self.ids)
        if size == 0:
            raise HstuError("the corpus holds no items")
        if len(self.titles) != size or self.years.shape != (size,):
            raise HstuError(f"titles and years must have {size} entries, as ids have")
        if self.genres.shape != (size, len(self.genre_names)):
            raise HstuError(f"genres must be {size} x {len(self.genre_names)}")
        values, counts = np.unique(self.ids, return_counts=True)
        if len(values) != size:
            twice = values[counts > 1]
            raise HstuError(f"{len(twice)} item ids appear twice, first: {_some(twice)}")

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def of_columns(
        cls,
        ids: NDArray[np.int64],
        titles: Sequence[str],
        genres: Sequence[str],
        years: NDArray[np.int64],
    ) -> Items:
        """Make items from columns; ``genres`` holds names joined by ``|`` ("" for none).

        Genre names are sorted, so that their order depends on the content alone.
        """
        split = [[name for name in joined.split("|") if name] for joined in genres]
        names = sorted({name for row in split for name in row})
        column = {name: index for index, name in enumerate(names)}
        table = np.zeros((len(split), len(names)), dtype=np.bool_)
        for row, present in enumerate(split):
            table[row, [column[name] for name in present]] = True
        return cls(ids, tuple(titles), table, tuple(names), years)

    @classmethod
    def read(cls, path: Path) -> Items:
        """Read ``items.parquet`` of a split; a missing or broken file is an ``HstuError``."""
        table = read_table(path, _COLUMNS)
        columns = {name: table.column(name) for name in _COLUMNS}
        for name, column in columns.items():
            if column.null_count:
                raise HstuError(f"column {name} has missing values", where=str(path))
        try:
            return cls.of_columns(
                columns["item_id"].cast(pa.int64()).to_numpy(),
                columns["title"].cast(pa.string()).to_pylist(),
                columns["genres"].cast(pa.string()).to_pylist(),
                columns["year"].cast(pa.int64()).to_numpy(),
            )
        except pa.ArrowInvalid as error:
            raise HstuError(f"column of a wrong type: {error}", where=str(path)) from error
        except HstuError as error:
            raise HstuError(error.message, where=str(path), hint=error.hint) from error

    def counted(self, training: Sequence[Path]) -> Items:
        """The same items, with the events of the ``training`` files (column item_id) counted."""
        return replace(self, train_counts=self.count(training))

    def count(self, training: Sequence[Path]) -> NDArray[np.int64]:
        """Events [X] of each item in the ``training`` files (column item_id)."""
        counts = np.zeros(len(self), np.int64)
        for path in training:
            (ids,) = read_integers(path, ["item_id"])
            counts += np.bincount(self.index(ids) - 1, minlength=len(self))
        return counts

    def write(self, path: Path) -> None:
        """Write ``items.parquet`` (item_id, title, genres joined by ``|``, year) atomically."""
        names = np.array(self.genre_names, dtype=object)
        joined = ["|".join(names[row]) for row in self.genres]
        columns = [
            pa.array(self.ids, pa.int64()),
            pa.array(self.titles, pa.string()),
            pa.array(joined, pa.string()),
            pa.array(self.years, pa.int64()),
        ]
        write_table(path, pa.table(columns, names=_COLUMNS))

    def index(self, item_ids: ArrayLike) -> NDArray[np.int64]:
        """Dense indices 1..X of ``item_ids``, same shape (0 is left to padding).

        An id outside the corpus is an ``HstuError``.
        """
        wanted = np.asarray(item_ids, dtype=np.int64)
        order, ordered = self._lookup
        place = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
        unknown = ordered[place] != wanted
        if unknown.any():
            missing = np.unique(wanted[unknown])
            raise HstuError(
                f"{len(missing)} item ids are not in the corpus, first: {_some(missing)}",
                hint="add them to the items file, or remove it to take all items that occur",
            )
        return order[place] + 1

    @cached_property
    def _lookup(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Positions [X] that sort the ids, and the sorted ids [X]."""
        order = np.argsort(self.ids, kind="stable")
        return order, self.ids[order]


def _some(values: NDArray[np.int64]) -> str:
    return ", ".join(str(value) for value in values[:5].tolist())
