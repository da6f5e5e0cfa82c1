from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hstu.data.errors import HstuError
from hstu.data.files import write_table
from hstu.data.items import Items

if TYPE_CHECKING:
    from pathlib import Path


def make(ids: list[int]) -> Items:
    nothing = [""] * len(ids)
    return Items.of_columns(np.array(ids), nothing, nothing, np.zeros(len(ids), np.int64))


def test_a_written_corpus_reads_back_the_same(tmp_path: Path) -> None:
    items = Items.of_columns(
        np.array([5, 3, 9]), ["Élan", "", "c|d"], ["b|a", "", "b"], np.array([1999, 0, 2001])
    )
    items.write(tmp_path / "items.parquet")
    back = Items.read(tmp_path / "items.parquet")
    assert back.ids.tolist() == [5, 3, 9]
    assert back.titles == ("Élan", "", "c|d")
    assert back.genre_names == ("a", "b")
    assert back.genres.tolist() == [[True, True], [False, False], [False, True]]
    assert back.years.tolist() == [1999, 0, 2001]


@settings(deadline=None)
@given(st.lists(st.integers(0, 2**62), min_size=1, max_size=30, unique=True))
def test_index_numbers_the_file_order_from_one(ids: list[int]) -> None:
    items = make(ids)
    assert items.index(ids).tolist() == list(range(1, len(ids) + 1))
    assert items.index([ids[::-1]]).tolist() == [list(range(len(ids), 0, -1))]


@pytest.mark.parametrize("unknown", [0, 4, 99, -1])
def test_an_unknown_id_is_named(unknown: int) -> None:
    with pytest.raises(HstuError, match=f"not in the corpus, first: {unknown}"):
        make([5, 3, 9]).index([5, unknown])


def test_an_id_twice_and_an_empty_corpus_are_refused() -> None:
    with pytest.raises(HstuError, match="appear twice, first: 5"):
        make([5, 3, 5])
    with pytest.raises(HstuError, match="no items"):
        make([])


def test_a_broken_items_file_names_the_file_and_the_column(tmp_path: Path) -> None:
    path = tmp_path / "items.parquet"
    with pytest.raises(HstuError, match="missing") as absent:
        Items.read(path)
    assert absent.value.where == str(path)
    path.write_bytes(b"PAR1 not really")
    with pytest.raises(HstuError, match="not a readable parquet file"):
        Items.read(path)
    write_table(path, pa.table({"item_id": [1], "title": ["a"], "year": [1990]}))
    with pytest.raises(HstuError, match="column genres is missing"):
        Items.read(path)
