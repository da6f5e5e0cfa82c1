from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from hstu.data.errors import HstuError
from hstu.data.files import write_table
from hstu.data.histories import HistoryTable

if TYPE_CHECKING:
    from pathlib import Path


def test_a_written_table_reads_back_the_same(tmp_path: Path) -> None:
    table = HistoryTable(
        np.array([4, 9]),
        np.array([0, 3, 4]),
        np.array([7, 8, 7, 1]),
        np.array([1, 1, 2, 5]),
        np.array([6, 2**40]),
    )
    table.write(tmp_path / "h.parquet")
    back = HistoryTable.read(tmp_path / "h.parquet")
    for name in ("user_ids", "offsets", "item_ids", "timestamps", "request_timestamps"):
        assert getattr(back, name).tolist() == getattr(table, name).tolist()


def test_lists_of_unequal_length_are_refused(tmp_path: Path) -> None:
    columns = {"user_id": [1], "item_ids": [[1, 2]], "timestamps": [[1]], "request_timestamp": [3]}
    write_table(tmp_path / "h.parquet", pa.table(columns))
    with pytest.raises(HstuError, match="differ in length"):
        HistoryTable.read(tmp_path / "h.parquet")
