"""Which tokens count how much: MPTA, focal, boost of the last K."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from training_samples import HISTORY, Recorder, experiment

from hstu.config import read_config
from hstu.config.interventions import BoostLossConfig, FocalConfig, MptaConfig
from hstu.data.batches import Batch, History, TrainingBatch, TrainingRows
from hstu.data.errors import HstuError
from hstu.data.items import Items
from hstu.data.split import read_events
from hstu.interventions.boost_loss import BoostLoss
from hstu.interventions.focal import Focal
from hstu.interventions.mpta import Mpta
from hstu.models import build
from hstu.training import train
from hstu.training.objective import NextItem

RECIPES = Path(__file__).parents[2] / "config/recipes"
BASE = RECIPES.parent / "experiments/base.yaml"
WEIGHTS = "model.safetensors"
MODEL = experiment().model


def trained(split: Path, out: Path, interventions: dict[str, Any]) -> bytes:
    train(experiment(interventions=interventions), split, out, progress=Recorder())
    return (out / WEIGHTS).read_bytes()


def batch_of(lengths: list[int], width: int | None = None) -> TrainingBatch:
    shape = (len(lengths), width or max(lengths))
    valid = torch.arange(shape[1]) < torch.tensor(lengths)[:, None]
    items, zeros = torch.ones(shape, dtype=torch.int64) * valid, torch.zeros(shape, dtype=int)
    return TrainingBatch(Batch(items, zeros, zeros, torch.tensor(lengths)), items)


def weighted_step(model: Any, rows: TrainingRows, seed: int = 0) -> list[torch.Tensor]:
    """The gradients of one batch of all rows, without dropout."""
    model.eval().zero_grad()
    generator = torch.Generator().manual_seed(seed)
    NextItem(model.config.train, model.items.num_embeddings - 1).backward(
        model, rows, list(range(len(rows))), generator
    )
    return [p.grad.clone() for p in model.parameters() if p.grad is not None]


@pytest.mark.parametrize(
    "neutral",
    [
        {"mpta": {"rows": 0}},
        {"focal": {"gamma": 0.0, "alpha": 0.0}},
        {"boost_loss": {"factor": 1.0, "last": 3}},
        {"boost_loss": {"factor": 3.0, "last": 5, "counted_from": "padded_width"}},
    ],
    ids=str,
)
def test_off_is_the_baseline_to_the_bit(
    split: Path, baseline: Path, tmp_path: Path, neutral: dict[str, Any]
) -> None:
    assert trained(split, tmp_path, neutral) == (baseline / WEIGHTS).read_bytes()


def test_every_knob_changes_training(split: Path, baseline: Path, tmp_path: Path) -> None:
    settings: list[dict[str, Any]] = [
        {"mpta": {"rows": 1, "last": 3}},
        {"mpta": {"rows": 2, "last": 3}},
        {"mpta": {"rows": 1, "last": 1}},
        {"mpta": {"rows": 1, "last": 3, "shortest": 6}},
        {"focal": {"gamma": 1.0}},
        {"focal": {"alpha": 0.5}},
        {"boost_loss": {"factor": 2.0, "last": 1}},
        {"boost_loss": {"factor": 2.0, "last": 3}},
        {"boost_loss": {"factor": 3.0, "last": 3}},
    ]
    found = [trained(split, tmp_path / str(k), setting) for k, setting in enumerate(settings)]
    assert len({*found, (baseline / WEIGHTS).read_bytes()}) == len(settings) + 1


def test_the_padded_boost_is_shipped_as_a_control() -> None:
    boost = read_config(BASE, [RECIPES / "controls/boost-padded.yaml"]).interventions.boost_loss
    assert boost is not None
    assert boost.counted_from == "padded_width"
    assert boost.factor != 1
    honest = read_config(BASE, [RECIPES / "boost-loss.yaml"]).interventions.boost_loss
    assert honest is not None
    assert honest.counted_from == "last_event"


@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=5),
    last=st.integers(1, 12),
    padding=st.integers(0, 4),
)
def test_as_many_are_boosted_as_there_are(lengths: list[int], last: int, padding: int) -> None:
    batch = batch_of(lengths, max(lengths) + padding)
    items = Items.of_columns(np.array([1]), [""], [""], np.array([0]))
    boost = BoostLoss(BoostLossConfig(factor=3.0, last=last), MODEL, items)
    weights = boost.token_weights(torch.zeros(sum(lengths)), batch)
    for length, row in zip(lengths, torch.split(weights, lengths), strict=True):
        kept = min(last, length)
        assert row.tolist() == [1.0] * (length - kept) + [3.0] * kept


def test_factor_two_is_the_last_pair_counted_twice(split: Path, items: Items) -> None:
    rows = TrainingRows.read(split, items, history_length=HISTORY)
    boosted = build(experiment(interventions={"boost_loss": {"factor": 2.0, "last": 1}}), items)
    plain = build(experiment(), items)
    plain.load_state_dict(boosted.state_dict())
    found = weighted_step(boosted, rows)
    tokens = sum(min(len(h.item_index), HISTORY) for h in rows.histories)
    every = weighted_step(plain, rows)
    # The gradient of the last pairs alone, by a boost so large that nothing else is left.
    only_last = experiment(interventions={"boost_loss": {"factor": 1e6, "last": 1}})
    last = build(only_last, items)
    last.load_state_dict(boosted.state_dict())
    final = weighted_step(last, rows)
    for one, all_pairs, last_pair in zip(found, every, final, strict=True):
        expected = (all_pairs * tokens + last_pair * len(rows)) / (tokens + len(rows))
        torch.testing.assert_close(one, expected, rtol=1e-3, atol=1e-5)


def test_focal_weights_are_those_of_the_equation(split: Path, items: Items) -> None:
    rows = TrainingRows.read(split, items, history_length=HISTORY)
    batch = rows.batch(range(8))
    targets = batch.targets[batch.inputs.valid]
    losses = torch.linspace(0.01, 6, len(targets), requires_grad=True)
    weights = Focal(FocalConfig(gamma=2.0, alpha=0.5), MODEL, items).token_weights(losses, batch)
    assert not weights.requires_grad
    seen = Counter(items.index(read_events(split, "train").items).tolist())
    for loss, target, weight in zip(losses.tolist(), targets.tolist(), weights, strict=True):
        expected = (1 - np.exp(-loss)) ** 2 * (seen[target] + 1) ** -0.5
        assert weight.item() == pytest.approx(expected, rel=1e-5)


def test_a_batch_in_which_nothing_counts_is_an_error(items: Items) -> None:
    """With one item in the corpus no target is hard: every loss, and so every weight, is 0."""
    config = experiment(interventions={"focal": {"gamma": 1.0}})
    once = History(np.array([1, 1]), np.array([5, 6]), 7)
    rows = TrainingRows([once], np.array([1]), HISTORY)
    objective = NextItem(config.train, items=1)
    with pytest.raises(HstuError, match="no token of a batch counts"):
        objective.backward(build(config, items), rows, [0], torch.Generator().manual_seed(0))


def test_counts_are_of_training_events_only(split: Path, items: Items) -> None:
    events = read_events(split, "train")
    assert items.train_counts is not None
    assert items.train_counts.sum() == len(events)
    assert Focal(FocalConfig(alpha=1.0), MODEL, items).rarity.tolist()[1:] == pytest.approx(
        [1 / (int((events.items == item).sum()) + 1) for item in items.ids]
    )
    with pytest.raises(HstuError, match="no counts"):
        Focal(FocalConfig(alpha=1.0), MODEL, Items.read(split / "items.parquet"))


def test_a_common_factor_of_all_weights_cancels(
    split: Path, items: Items, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = TrainingRows.read(split, items, history_length=HISTORY)
    model = build(experiment(interventions={"focal": {"gamma": 1.0, "alpha": 0.25}}), items)
    before = weighted_step(model, rows)
    honest = Focal.token_weights
    monkeypatch.setattr(Focal, "token_weights", lambda *given: 7 * honest(*given))
    for one, other in zip(before, weighted_step(model, rows), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-7)


def sequence(size: int) -> History:
    return History(np.arange(1, size + 1), np.arange(size) * 10 + 5, size * 10 + 5)


def mpta(**section: Any) -> Mpta:
    items = Items.of_columns(np.array([1]), [""], [""], np.array([0]))
    return Mpta(MptaConfig(**section), MODEL, items)


def test_crops_are_slices_of_what_was_before_the_last_training_event() -> None:
    sizes = [2, 3, 4, 12, 30]
    histories = [sequence(size) for size in sizes]
    rows = TrainingRows(histories, np.array(sizes) + 1, HISTORY)
    generator, ends = torch.Generator().manual_seed(0), []
    for _ in range(200):
        more = mpta(rows=2, last=3, shortest=3).rows(rows, generator)
        assert more.histories[: len(rows)] == histories
        crops = more.histories[len(rows) :]
        assert len(crops) == 2 * 3  # two users have no event left to end at
        for crop, target in zip(crops, more.targets[len(rows) :].tolist(), strict=True):
            end = len(crop.item_index)
            assert target == end + 1
            assert crop.item_index.tolist() == list(range(1, end + 1))
            assert crop.timestamps.tolist() == [at * 10 + 5 for at in range(end)]
            assert crop.request_timestamp == end * 10 + 5
            ends.append(end)
    assert {*ends} == set(range(3, 30))
    assert max(ends) + 1 < rows.targets.max()


def test_crops_differ_between_epochs_and_stay_in_training(split: Path, items: Items) -> None:
    rows = TrainingRows.read(split, items, history_length=HISTORY)
    longest = max(len(history.item_index) for history in rows.histories)
    generator, seen = torch.Generator().manual_seed(1), set()
    for _ in range(3):
        more = mpta(rows=1, last=3).rows(rows, generator)
        ends = tuple(len(history.item_index) for history in more.histories[len(rows) :])
        assert max(ends) < longest
        seen.add(ends)
    assert len(seen) == 3


def test_only_the_last_tokens_of_a_crop_count(split: Path, items: Items) -> None:
    rows = TrainingRows.read(split, items, history_length=HISTORY)
    change = mpta(rows=1, last=2)
    more = change.rows(rows, torch.Generator().manual_seed(1))
    batch = more.batch([0, len(more) - 1])
    weights = change.token_weights(torch.zeros(int(batch.inputs.lengths.sum())), batch)
    assert weights is not None
    whole, crop = torch.split(weights, batch.inputs.lengths.tolist())
    assert whole.tolist() == [1.0] * len(whole)
    assert crop.tolist() == [0.0] * (len(crop) - 2) + [1.0, 1.0]


def test_the_curve_counts_the_tokens_that_count(split: Path, items: Items, tmp_path: Path) -> None:
    rows = TrainingRows.read(split, items, history_length=HISTORY)
    tokens = sum(min(len(h.item_index), HISTORY) for h in rows.histories)
    crops = sum(len(h.item_index) > 2 for h in rows.histories)
    shown = Recorder()
    config = experiment({"epochs": 1}, {"mpta": {"rows": 1, "last": 2}})
    train(config, split, tmp_path, progress=shown)
    assert [row.tokens for row in shown.rows] == [tokens + 2 * crops]
