"""Estimators of the softmax as options, and training on random labels."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch.nn import functional
from training_samples import HISTORY, Recorder, experiment

from hstu.config import read_config
from hstu.data.batches import TrainingRows
from hstu.losses import full_softmax, sampled_softmax, shared_softmax
from hstu.models import build
from hstu.training import objective, train

if TYPE_CHECKING:
    from hstu.data.batches import TrainingBatch
    from hstu.data.items import Items
    from hstu.models import Hstu

RECIPES = Path(__file__).parents[2] / "config/recipes"
BASE = RECIPES.parent / "experiments/base.yaml"
T, D, X, R = 23, 5, 17, 6


def drawn() -> tuple[torch.Tensor, ...]:
    """Queries, positives, table (all float64 leaves), targets, shared negatives."""
    generator = torch.Generator().manual_seed(0)
    shapes = [(T, D), (T, D), (X + 1, D)]
    leaves = [
        torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()
        for shape in shapes
    ]
    targets = torch.randint(1, X + 1, (T,), generator=generator)
    return *leaves, targets, torch.randint(1, X + 1, (R,), generator=generator)


def gradients(loss: torch.Tensor, *leaves: torch.Tensor) -> list[torch.Tensor]:
    weights = torch.arange(1, len(loss) + 1, dtype=loss.dtype)
    return list(torch.autograd.grad((loss * weights).sum(), leaves))


def assert_equal(one: torch.Tensor, other: torch.Tensor, *leaves: torch.Tensor) -> None:
    torch.testing.assert_close(one, other)
    for a, b in zip(gradients(one, *leaves), gradients(other, *leaves), strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("at_once", [1, 3, 64])
def test_full_is_the_cross_entropy(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    module = sys.modules[full_softmax.__module__]
    monkeypatch.setattr(module, "_TOKENS_AT_ONCE", {"cpu": at_once})
    queries, positives, table, targets, _ = drawn()
    logits = queries @ table.T
    target = (queries * positives).sum(-1, keepdim=True)
    logits = logits.scatter(1, targets[:, None], target)[:, 1:] / 0.5
    naive = functional.cross_entropy(logits, targets - 1, reduction="none")
    found = full_softmax(queries, positives, table, targets, temperature=0.5)
    assert_equal(found, naive, queries, positives, table)


def test_full_keeps_nothing_of_tokens_times_items() -> None:
    queries, positives, table, targets, _ = drawn()
    kept: list[int] = []

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        full_softmax(queries, positives, table, targets, temperature=0.5)
    assert max(kept) == max(T * D, (X + 1) * D)


def test_shared_is_independent_with_equal_draws() -> None:
    queries, positives, table, targets, negatives = drawn()
    assert (negatives == targets[:, None]).any()
    own = negatives.expand(T, R)
    independent = sampled_softmax(queries, positives, table, targets, own, temperature=0.5)
    found = shared_softmax(queries, positives, table, targets, negatives, temperature=0.5)
    assert_equal(found, independent, queries, positives, table)


def trained(split: Path, out: Path, **settings: Any) -> tuple[bytes, float]:
    shown = Recorder()
    train(experiment(settings), split, out, progress=shown)
    return (out / "model.safetensors").read_bytes(), shown.rows[-1].loss


@pytest.mark.parametrize("estimator", ["independent", "shared"])
def test_negatives_are_drawn_anew_from_the_whole_corpus(
    split: Path, items: Items, monkeypatch: pytest.MonkeyPatch, estimator: str
) -> None:
    seen: list[torch.Tensor] = []

    def watched(model: Hstu, batch: TrainingBatch, negatives: torch.Tensor) -> torch.Tensor:
        seen.append(negatives)
        return batch.inputs.lengths * 0.0

    monkeypatch.setattr(objective, "training_loss", watched)
    config = experiment({"estimator": estimator})
    rows = TrainingRows.read(split, items, history_length=HISTORY)
    batch, generator = [rows.batch(range(8))], torch.Generator().manual_seed(0)
    model, step = build(config, items), objective.NextItem(config.train, len(items))
    for _ in range(200):
        step.losses(model, batch, generator)
    assert not torch.equal(seen[0], seen[1])
    assert torch.cat([part.flatten() for part in seen]).unique().tolist() == [
        *range(1, len(items) + 1)
    ]


def test_an_estimator_is_chosen_by_the_config(split: Path, baseline: Path, tmp_path: Path) -> None:
    named, _ = trained(split, tmp_path / "independent", estimator="independent")
    assert named == (baseline / "model.safetensors").read_bytes()
    shared, _ = trained(split, tmp_path / "shared", estimator="shared")
    full, _ = trained(split, tmp_path / "full", estimator="full")
    assert len({named, shared, full}) == 3
    assert '"estimator": "full"' in (tmp_path / "full/checkpoint.json").read_text()
    ignored, _ = trained(split, tmp_path / "ignored", estimator="full", negatives=3)
    assert ignored == full


@pytest.mark.parametrize("name", ["shared-negatives", "full-softmax"])
def test_recipes(name: str) -> None:
    config = read_config(BASE, [RECIPES / f"{name}.yaml"])
    assert config.train.estimator == name.partition("-")[0]


def test_random_labels_teach_nothing(split: Path, items: Items, tmp_path: Path) -> None:
    labels = read_config(BASE, [RECIPES / "controls/shuffled-labels.yaml"]).train.labels
    assert labels == "random"
    floor = math.log1p(8 * (1 - 1 / len(items)))
    settings = {"epochs": 25, "learning_rate": 0.02}
    _, random = trained(split, tmp_path / "random", labels=labels, **settings)
    _, honest = trained(split, tmp_path / "honest", **settings)
    assert floor * 0.98 < random < floor * 1.2
    assert honest < floor * 0.95
