"""What every check works on: a small sample of real rows, fresh and perturbed models."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from hstu.data.batches import History, TrainingRows
from hstu.data.errors import HstuError
from hstu.data.items import Items
from hstu.models import ExperimentConfig, Hstu, build, read_config

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from hstu.data.batches import TrainingBatch

_USERS = 64
_EVENTS = 16
_MIN_USERS = 8
_PERTURBATION = 0.3


@dataclass(frozen=True)
class Finding:
    """The verdict of one check: what was seen, in words and in numbers."""

    passed: bool
    detail: str
    measured: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Bench:
    """An experiment with a sample of its training rows, cut to the newest few events."""

    config: ExperimentConfig
    items: Items
    rows: TrainingRows

    @classmethod
    def load(cls, config: Path, data: Path, recipes: Sequence[Path] = ()) -> Bench:
        """Read an experiment and sample its data folder (train.parquet, items.parquet)."""
        experiment = read_config(config, recipes)
        items = Items.read(data / "items.parquet").counted([data / "train.parquet"])
        length = min(_EVENTS, experiment.model.history_length)
        rows = TrainingRows.read(data, items, history_length=length)
        if len(rows) < _MIN_USERS:
            raise HstuError(
                f"preflight needs {_MIN_USERS} users with two training events, found {len(rows)}",
                where=str(data / "train.parquet"),
            )
        return cls(experiment, items, _sample(rows, length))

    def batch(self, users: int = _USERS) -> TrainingBatch:
        """The first ``users`` rows of the sample, at most half of it."""
        return self.rows.batch(range(min(users, len(self.rows) // 2)))

    def other_batch(self) -> TrainingBatch:
        """The half of the sample that ``batch`` never holds."""
        return self.rows.batch(range(len(self.rows) // 2, len(self.rows)))

    def fresh(self, seed: int = 0) -> Hstu:
        """A model as training would start it."""
        torch.manual_seed(seed)
        return build(self.config, self.items)

    def perturbed(self, seed: int = 0) -> Hstu:
        """A model all of whose parameters are random, so that no zero gate hides a path."""
        model = self.fresh(seed)
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for parameter in model.parameters():
                noise = torch.randn(2, *parameter.shape, generator=generator) * _PERTURBATION
                parameter.mul_(1 + noise[0]).add_(noise[1])
        return model

    def states(self) -> Iterator[tuple[str, Hstu]]:
        """The two models that a check looks at: at the start, and somewhere else."""
        yield "fresh", self.fresh()
        yield "perturbed", self.perturbed()


def _sample(rows: TrainingRows, length: int) -> TrainingRows:
    """Rows spread evenly over the users, every second one shortened so that lengths differ."""
    chosen = np.unique(np.linspace(0, len(rows) - 1, 2 * _USERS).astype(int))
    histories = []
    for place, row in enumerate(chosen.tolist()):
        history = rows.histories[row]
        keep = length if place % 2 == 0 else 1 + (place * 7) % length
        histories.append(
            History(
                history.item_index[-keep:],
                history.timestamps[-keep:],
                history.request_timestamp,
            )
        )
    return TrainingRows(histories, rows.targets[chosen], length)
