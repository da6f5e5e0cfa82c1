"""Training rows are read from whole numbers in the order of time, or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from hstu.data.batches import TrainingRows
from hstu.data.errors import HstuError
from hstu.data.files import write_table
from hstu.data.items import Items

if TYPE_CHECKING:
    from pathlib import Path

ITEMS = Items.of_columns(np.arange(1, 6), [""] * 5, [""] * 5, np.zeros(5, np.int64))
GOOD: dict[str, list[Any]] = {
    "user_id": [1, 1, 2, 2],
    "item_id": [1, 2, 3, 4],
    "timestamp": [5, 5, 9, 10],
}


def rows(folder: Path, **columns: list[Any]) -> TrainingRows:
    write_table(folder / "train.parquet", pa.table(GOOD | columns))
    return TrainingRows.read(folder, ITEMS, history_length=4)


def test_equal_stamps_keep_the_order_of_the_file(tmp_path: Path) -> None:
    found = rows(tmp_path)
    assert [history.item_index.tolist() for history in found.histories] == [[1], [3]]
    assert found.targets.tolist() == [2, 4]


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("item_id", [1.0, 2.5, 3.0, 4.0], "item_id must hold integers"),
        ("item_id", [1, None, 3, 4], "item_id has missing values"),
        ("timestamp", [5, 5, None, 10], "timestamp has missing values"),
        ("user_id", ["a", "a", "b", "b"], "user_id must hold integers"),
        ("user_id", [[1], [1], [2], [2]], "user_id must hold integers"),
    ],
)
def test_a_value_that_is_no_whole_number_is_refused(
    tmp_path: Path, column: str, values: list[Any], message: str
) -> None:
    with pytest.raises(HstuError, match=message):
        rows(tmp_path, **{column: values})


def test_events_out_of_the_order_of_time_are_refused(tmp_path: Path) -> None:
    with pytest.raises(HstuError, match="user 2 are not in the order of time"):
        rows(tmp_path, timestamp=[5, 5, 10, 9])


def test_validation_events_before_the_training_events_are_refused(tmp_path: Path) -> None:
    rows(tmp_path)
    late = {"user_id": [1], "item_id": [5], "timestamp": [4]}
    write_table(tmp_path / "validation.parquet", pa.table(late))
    with pytest.raises(HstuError, match="user 1 are not in the order of time"):
        TrainingRows.read(tmp_path, ITEMS, history_length=4, parts=("train", "validation"))


def test_counts_refuse_what_is_no_item_id(tmp_path: Path) -> None:
    path = tmp_path / "train.parquet"
    write_table(path, pa.table({"item_id": [1.0, 2.5]}))
    with pytest.raises(HstuError, match="item_id must hold integers"):
        ITEMS.counted([path])
