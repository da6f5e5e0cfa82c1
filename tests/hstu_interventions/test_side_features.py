"""Side features: what an item's buckets are, where they enter, and what training may count."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from trial import BASE, with_interventions

from hstu.config import parse_config, read_config
from hstu.data.batches import TrainingRows
from hstu.data.errors import HstuError
from hstu.data.files import read_table
from hstu.data.items import Items
from hstu.interventions.side_features import decades, genre_shares, popularity_levels
from hstu.models import build, load, score_histories
from hstu.training import train

if TYPE_CHECKING:
    from pathlib import Path

    from hstu.preflight.bench import Bench

ALL = {"genre": 0.5, "decade": 0.5, "popularity": 0.5}


def items_of(genres: list[str]) -> Items:
    ids = np.arange(1, len(genres) + 1)
    return Items.of_columns(ids, [""] * len(ids), genres, np.zeros(len(ids), np.int64))


def test_decades_have_twelve_buckets_and_one_for_unknown() -> None:
    years = np.array([0, 1874, 1910, 1919, 1920, 1999, 2000, 2029, 2050])
    assert decades(years).tolist() == [0, 1, 1, 1, 2, 9, 10, 12, 12]


def test_popularity_is_the_whole_logarithm_of_the_count() -> None:
    counts = np.array([0, 1, 2, 3, 4, 7, 8, 2**20 - 1, 2**20])
    assert popularity_levels(counts).tolist() == [0, 1, 2, 2, 3, 3, 4, 20, 21]


def test_an_item_without_genre_has_no_share_and_no_nan() -> None:
    shares = genre_shares(items_of(["b|a", "", "c"]), None)
    assert shares.tolist() == [[0.5, 0.5, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]


def test_a_permutation_deals_the_same_genres_to_other_items() -> None:
    items = items_of([f"g{k % 7}|g{k % 3}" for k in range(60)])
    dealt = genre_shares(items, 3)
    raw = genre_shares(items, None)
    assert sorted(map(tuple, dealt)) == sorted(map(tuple, raw))
    assert (dealt != raw).any(1).mean() > 0.5
    assert np.array_equal(dealt, genre_shares(items, 3))
    assert not np.array_equal(dealt, genre_shares(items, 4))


def test_genre_numbers_do_not_depend_on_the_hash_seed(split: Path) -> None:
    code = (
        "import sys, json, pathlib; from hstu.data.items import Items;"
        "items = Items.read(pathlib.Path(sys.argv[1]));"
        "print(json.dumps([items.genre_names, items.genres.tolist()]))"
    )
    argv = [sys.executable, "-c", code, str(split / "items.parquet")]
    found = [
        subprocess.run(
            argv, env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    ]
    assert found[0] == found[1]
    assert json.loads(found[0])[0]


def test_counts_are_those_of_the_training_events_alone(split: Path) -> None:
    items = Items.read(split / "items.parquet")
    assert items.train_counts is None
    events = read_table(split / "train.parquet", ["item_id"]).column("item_id").to_pylist()
    counts = items.counted([split / "train.parquet"]).train_counts
    assert counts is not None
    assert counts.tolist() == [events.count(item) for item in items.ids.tolist()]
    both = items.counted([split / "train.parquet", split / "validation.parquet"]).train_counts
    assert both is not None
    assert both.sum() == len(events) + len(read_table(split / "validation.parquet", ["item_id"]))


def test_popularity_without_counts_is_refused(bench: Bench) -> None:
    config = with_interventions(bench, side_features=ALL).config
    with pytest.raises(HstuError, match="were not counted"):
        build(config, replace(bench.items, train_counts=None))


def test_a_feature_that_the_corpus_lacks_is_left_out(bench: Bench) -> None:
    """So that a recipe replays where items have neither genre nor year."""
    config = with_interventions(bench, side_features=ALL).config
    bare = items_of([""] * len(bench.items))
    counted = replace(bare, train_counts=bench.items.train_counts)
    (channel,) = build(config, counted).interventions["side_features"].channels
    assert len(channel.table) == 32, "popularity"


def test_features_change_queries_and_never_the_corpus(bench: Bench) -> None:
    model = with_interventions(bench, side_features=ALL).fresh().eval()
    inputs = bench.batch(8).inputs
    probe = torch.randn(3, 8)
    query, corpus = model.query(inputs), model.score_corpus(probe)
    positives = model.embed_items(inputs.items)
    for channel in model.interventions["side_features"].channels:
        with torch.no_grad():
            channel.table.add_(torch.randn(channel.table.shape))
        assert torch.equal(model.score_corpus(probe), corpus)
        assert torch.equal(model.embed_items(inputs.items), positives)
        moved = model.query(inputs)
        assert not torch.allclose(moved, query)
        query = moved


def test_the_features_are_the_weighted_sum_of_the_definition(bench: Bench) -> None:
    block = {"genre": 0.5, "decade": 0.25, "popularity": 2.0}
    module = with_interventions(bench, side_features=block).fresh().interventions["side_features"]
    genres, decade, popularity = (channel.table for channel in module.channels)
    items, inputs = bench.items, bench.batch(6).inputs
    raw = torch.zeros(*inputs.items.shape, 8)
    found = module.items(raw, inputs)
    for user, length in enumerate(inputs.lengths.tolist()):
        for place in range(length):
            x = int(inputs.items[user, place]) - 1
            mine = torch.from_numpy(np.flatnonzero(items.genres[x]))
            expected = 0.5 * genres[mine].mean(0) if len(mine) else torch.zeros(8)
            if items.years[x]:
                expected = expected + 0.25 * decade[(int(items.years[x]) - 1910) // 10]
            count = int(items.train_counts[x])  # type: ignore[index]
            if count:
                expected = expected + 2.0 * popularity[count.bit_length() - 1]
            torch.testing.assert_close(found[user, place], expected)
        assert not found[user, length:].any()


def test_a_checkpoint_carries_what_training_counted(split: Path, tmp_path: Path) -> None:
    """Evaluation reads items alone and ranks as the trained network does."""
    data = read_config(BASE).to_json() | {"interventions": {"side_features": ALL}}
    data["train"]["epochs"] = 1
    model = train(parse_config(data, source="test"), split, tmp_path, seed=1, threads=1)
    items = Items.read(split / "items.parquet")
    histories = TrainingRows.read(split, items, history_length=12).histories[:16]
    expected, found = (
        torch.cat(list(score_histories(m, histories))) for m in (model, load(tmp_path, items))
    )
    assert torch.equal(expected, found)


def test_the_leaking_control_adds_the_same_once_and_in_the_lookup(bench: Bench) -> None:
    leaking = {"genre": 0.5, "control": {"leak": True}}
    honest, leak = (
        with_interventions(bench, side_features=block).fresh()
        for block in ({"genre": 0.5}, leaking)
    )
    inputs = bench.batch(6).inputs
    assert torch.equal(honest.eval().query(inputs), leak.eval().query(inputs))
    assert torch.equal(honest.embed_items(inputs.items), honest.items(inputs.items))
    assert not torch.equal(leak.embed_items(inputs.items), honest.items(inputs.items))
