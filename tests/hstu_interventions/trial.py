"""A tiny experiment and split, and what an experiment computes, for tests of interventions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from hstu.config import ExperimentConfig, parse_config
from hstu.data.readers import read_source
from hstu.data.split import SplitOptions, write_split
from hstu.data.synthetic import Shape, synthesize
from hstu.models import score_histories
from hstu.training.objective import NextItem

if TYPE_CHECKING:
    from hstu.data.batches import TrainingRows
    from hstu.models import Hstu
    from hstu.preflight.bench import Bench

RECIPES = Path(__file__).parents[2] / "config" / "recipes"
BASE = Path(__file__).with_name("tiny.yaml")


def make_split(folder: Path) -> Path:
    """The split of a small synthetic data set."""
    shape = Shape(users=56, items=60, genres=5, shortest=5, longest=24)
    synthesize(5, folder / "raw", shape)
    write_split(read_source(folder / "raw"), "synthetic", folder / "split", SplitOptions())
    return folder / "split"


def with_interventions(bench: Bench, **blocks: Any) -> Bench:
    """The bench with these blocks of the ``interventions`` section, none by default."""
    data = bench.config.to_json() | {"interventions": blocks}
    return with_config(bench, parse_config(data, source="test"))


def with_config(bench: Bench, config: ExperimentConfig) -> Bench:
    """The bench with another experiment."""
    return replace(bench, config=config)


def training_step(model: Hstu, rows: TrainingRows, seed: int = 0) -> dict[str, torch.Tensor]:
    """The loss of an epoch's first batch of 32 rows and the gradients that it gives."""
    model.train().zero_grad()
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    for change in model.changes:
        rows = change.rows(rows, generator)
    users = torch.randperm(len(rows), generator=generator)[:32].tolist()
    objective = NextItem(model.config.train, len(model.item_table()) - 1)
    step = objective.backward(model, rows, users, generator)
    grads = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    return grads | {"loss": torch.tensor(step.loss)}


def scores(model: Hstu, rows: TrainingRows) -> torch.Tensor:
    """Scores [b, X] of the corpus for some users."""
    return torch.cat(list(score_histories(model, rows.histories[:24])))
