"""Rank and metrics files that are not what an evaluation writes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rank_samples import SPLIT

from hstu.data.errors import HstuError
from hstu.data.files import write_json
from hstu.evaluation.rank_files import read_canonical_ranks, read_subset_ranks
from hstu.evaluation.results import read_canonical

if TYPE_CHECKING:
    from pathlib import Path

CANONICAL = {"schema": "hstu.ranks/1", "target": "test", "split": SPLIT, "corpus": 9}
SUBSET = CANONICAL | {
    "schema": "hstu.subset-ranks/1",
    "sample": {"seed": 1, "digest": "d"},
}


def left(path: Path, facts: Any, column: str = "rank", **columns: list[Any]) -> Path:
    table = pa.table({"user_id": [1, 2], column: [3, 4]} | columns)
    content = facts if isinstance(facts, bytes) else json.dumps(facts).encode()
    pq.write_table(table.replace_schema_metadata({b"hstu": content}), path)
    return path


def test_what_an_evaluation_writes_is_read(tmp_path: Path) -> None:
    assert read_canonical_ranks(left(tmp_path / "r", CANONICAL)).ranks.tolist() == [3, 4]
    assert read_subset_ranks(left(tmp_path / "s", SUBSET, "subset_rank")).sample.seed == 1


@pytest.mark.parametrize("facts", [b"{", b"[]", b"5", b"\xff"])
def test_a_description_that_is_none_is_refused(tmp_path: Path, facts: bytes) -> None:
    with pytest.raises(HstuError, match="not ranks of schema"):
        read_canonical_ranks(left(tmp_path / "r", facts))


@pytest.mark.parametrize("change", [{"corpus": "9"}, {"corpus": None}, {"more": 1}, {"split": 5}])
def test_a_description_of_wrong_types_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    with pytest.raises(HstuError, match="incomplete or of wrong types"):
        read_canonical_ranks(left(tmp_path / "r", CANONICAL | change))


@pytest.mark.parametrize("sample", [{}, {"seed": 1}, "all"])
def test_a_sample_that_is_none_is_refused(tmp_path: Path, sample: Any) -> None:
    with pytest.raises(HstuError, match="incomplete or of wrong types"):
        read_subset_ranks(left(tmp_path / "r", SUBSET | {"sample": sample}, "subset_rank"))


@pytest.mark.parametrize(
    "columns", [{"rank": [1.5, 2.0]}, {"rank": [1, None]}, {"user_id": [None, 2]}], ids=str
)
def test_columns_that_are_no_whole_numbers_are_refused(
    tmp_path: Path, columns: dict[str, list[Any]]
) -> None:
    with pytest.raises(HstuError, match=r"must hold integers|missing values"):
        read_canonical_ranks(left(tmp_path / "r", CANONICAL, **columns))


@pytest.mark.parametrize("metrics", [None, [1.0], {"mrr": "0.5"}, {"mrr": True}], ids=str)
def test_metrics_that_are_no_numbers_are_refused(tmp_path: Path, metrics: Any) -> None:
    facts = CANONICAL | {"schema": "hstu.metrics/1", "users": 2}
    write_json(tmp_path / "m", facts | {"metrics": {"mrr": 0.5}})
    assert read_canonical(tmp_path / "m").metrics == {"mrr": 0.5}
    write_json(tmp_path / "m", facts | {"metrics": metrics})
    with pytest.raises(HstuError, match="mapping of names to numbers"):
        read_canonical(tmp_path / "m")
