from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from hstu.data.errors import HstuError
from hstu.data.items import Items
from hstu.data.readers import Interactions, RawData, read_source
from hstu.data.split import SplitOptions, write_split
from hstu.evaluation.metrics import metrics
from hstu.evaluation.popularity import popularity_chunks, popularity_scores
from hstu.evaluation.task import Questions, read_task

# user 1: 10 20 30 | 40 | 50      user 2: 20 20 | 10 | 20
EVENTS = [
    (1, 10, 1),
    (1, 20, 2),
    (1, 30, 3),
    (1, 40, 4),
    (1, 50, 5),
    (2, 20, 1),
    (2, 20, 6),
    (2, 10, 7),
    (2, 20, 8),
]


@pytest.fixture
def split(tmp_path: Path) -> Path:
    ids = np.array([50, 40, 30, 20, 10, 60])
    nothing = [""] * len(ids)
    items = Items.of_columns(ids, nothing, nothing, np.zeros(len(ids), np.int64))
    events = Interactions(*np.array(EVENTS).T)
    write_split(RawData(events, items, str), "tiny", tmp_path / "split", SplitOptions())
    return tmp_path / "split"


def histories(task: Questions) -> list[list[int]]:
    table = task.histories
    return [
        table.item_ids[start:end].tolist()
        for start, end in zip(table.offsets[:-1], table.offsets[1:], strict=True)
    ]


def test_validation_sees_training_events_and_test_sees_validation_too(split: Path) -> None:
    validation, test = (
        read_task(split, "validation").questions,
        read_task(split, "test").questions,
    )
    assert histories(validation) == [[10, 20, 30], [20, 20]]
    assert validation.items.ids[validation.targets].tolist() == [40, 10]
    assert validation.histories.request_timestamps.tolist() == [4, 7]
    assert histories(test) == [[10, 20, 30, 40], [20, 20, 10]]
    assert test.items.ids[test.targets].tolist() == [50, 20]
    assert test.histories.request_timestamps.tolist() == [5, 8]
    assert [test.items.ids[k] for k in test.seen_items[:4]] == [40, 30, 20, 10]
    assert test.seen_offsets.tolist() == [0, 4, 6]


def test_validation_works_without_the_test_file(split: Path) -> None:
    (split / "test.parquet").unlink()
    assert len(read_task(split, "validation").questions) == 2
    with pytest.raises(HstuError, match="missing"):
        read_task(split, "test")


def test_a_split_with_other_bytes_is_refused(split: Path) -> None:
    shutil.copyfile(split / "test.parquet", split / "validation.parquet")
    with pytest.raises(HstuError, match="differs from its manifest"):
        read_task(split, "validation")


def test_popularity_counts_the_events_before_the_targets(split: Path) -> None:
    task = read_task(split, "test").questions
    scores = popularity_scores(task)
    # 20: three events, 10: two, 30 and 40: one, in order of appearance; 50 and 60: none.
    assert task.items.ids[np.argsort(-scores)].tolist() == [20, 10, 30, 40, 50, 60]
    # User 1 has seen all but 50 and 60. User 2's target is a repeat and first of all.
    assert task.ranks(popularity_chunks(task)).tolist() == [1, 1]


def test_scores_of_too_few_users_are_no_result(split: Path) -> None:
    task = read_task(split, "test").questions
    with pytest.raises(HstuError, match="scores of 1 users, not of 2"):
        task.ranks([np.zeros((1, 6), np.float32)])


_REAL = os.environ.get("RANKEVOLVE_DATA")
_POPULARITY = {
    "ml-100k": (943, 1682, 0.0449, 0.0859),
    "ml-1m": (6040, 3883, 0.0179, 0.0364),
    "ml-latest-small": (610, 9742, 0.0194, 0.0426),
    "amazon-beauty": (22363, 12101, 0.0082, 0.0169),
}


@pytest.mark.skipif(not _REAL, reason="RANKEVOLVE_DATA names no folder of data sets")
@pytest.mark.parametrize("dataset", _POPULARITY)
def test_popularity_on_published_data(tmp_path: Path, dataset: str) -> None:
    raw = read_source(Path(str(_REAL)) / dataset)
    write_split(raw, dataset, tmp_path / "split", SplitOptions())
    task = read_task(tmp_path / "split", "test").questions
    users, corpus, ndcg, hit = _POPULARITY[dataset]
    assert (len(task), len(task.items)) == (users, corpus)
    measured = metrics(task.ranks(popularity_chunks(task)), corpus)
    assert measured["ndcg@10"] == pytest.approx(ndcg, abs=5e-5)
    assert measured["hr@10"] == pytest.approx(hit, abs=5e-5)
