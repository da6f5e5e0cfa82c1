"""A small experiment, its data and reporters for tests of training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hstu.config import ExperimentConfig, parse_config
from hstu.data.readers import read_source
from hstu.data.split import SplitOptions, write_split
from hstu.data.synthetic import Shape, synthesize
from hstu.training.progress import Lines

if TYPE_CHECKING:
    from pathlib import Path

    from hstu.training.curve import EpochResult

HISTORY = 10


def experiment(
    train: dict[str, Any] | None = None, interventions: dict[str, Any] | None = None, **model: Any
) -> ExperimentConfig:
    data = {
        "model": {
            "dim": 8,
            "blocks": 1,
            "heads": 2,
            "dqk": 4,
            "dv": 4,
            "history_length": HISTORY,
            "out_len": 11,
            "input_dropout": 0.1,
            "linear_dropout": 0.1,
            "temperature": 0.05,
        }
        | model,
        "train": {
            "epochs": 3,
            "batch_users": 16,
            "learning_rate": 0.005,
            "betas": [0.9, 0.98],
            "weight_decay": 0.0,
            "negatives": 8,
        }
        | (train or {}),
        "interventions": interventions or {},
    }
    return parse_config(data, source="test")


def make_split(folder: Path) -> Path:
    shape = Shape(users=40, items=40, genres=4, shortest=4, longest=20)
    synthesize(1, folder / "raw", shape)
    write_split(read_source(folder / "raw"), "synthetic", folder / "split", SplitOptions())
    return folder / "split"


class Recorder(Lines):
    """Remembers what it was told; interrupts in the batch of ``at`` (epoch, share of it)."""

    def __init__(self, at: tuple[int, float] | None = None) -> None:
        self.at = at
        self.notes: list[str] = []
        self.rows: list[EpochResult] = []

    def batch(self, so_far: EpochResult, done: float) -> None:
        if self.at is not None and (so_far.epoch, done) >= self.at:
            raise KeyboardInterrupt

    def epoch(self, row: EpochResult, epochs: int) -> None:
        self.rows.append(row)

    def note(self, text: str) -> None:
        self.notes.append(text)
