"""All that a scorer may know of the users, and the file that hands it over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hstu.data.errors import HstuError
from hstu.data.files import read_table, write_table

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

_COLUMNS = ["user_id", "item_ids", "timestamps", "request_timestamp"]


@dataclass(frozen=True, eq=False)
class HistoryTable:
    """The histories of U users in one flat table of E events.

    User u's events are ``offsets[u]:offsets[u + 1]`` of ``item_ids`` and ``timestamps`` (int64
    [E], oldest first); ``user_ids`` and ``request_timestamps`` are int64 [U], ``offsets`` int64
    [U + 1].
    """

    user_ids: NDArray[np.int64]
    offsets: NDArray[np.int64]
    item_ids: NDArray[np.int64]
    timestamps: NDArray[np.int64]
    request_timestamps: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.user_ids)

    def write(self, path: Path) -> None:
        """Write parquet: user_id, item_ids list, timestamps list, request_timestamp."""
        offsets = pa.array(self.offsets, pa.int64())
        columns = [
            pa.array(self.user_ids, pa.int64()),
            pa.LargeListArray.from_arrays(offsets, pa.array(self.item_ids, pa.int64())),
            pa.LargeListArray.from_arrays(offsets, pa.array(self.timestamps, pa.int64())),
            pa.array(self.request_timestamps, pa.int64()),
        ]
        write_table(path, pa.table(columns, names=_COLUMNS))

    @classmethod
    def read(cls, path: Path) -> HistoryTable:
        """Read what ``write`` wrote; an ``HstuError`` when the two lists of a user differ."""
        table = read_table(path, _COLUMNS).combine_chunks()
        lists = [table.column(name).cast(pa.large_list(pa.int64())) for name in _COLUMNS[1:3]]
        items, times = (column.combine_chunks() for column in lists)
        if not items.value_lengths().equals(times.value_lengths()):
            raise HstuError("item_ids and timestamps of a user differ in length", where=str(path))
        lengths = items.value_lengths().to_numpy(zero_copy_only=False)
        offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        return cls(
            table.column("user_id").to_numpy(),
            offsets,
            items.flatten().to_numpy(),
            times.flatten().to_numpy(),
            table.column("request_timestamp").to_numpy(),
        )
