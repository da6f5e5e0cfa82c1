"""A small experiment and split for tests of models and training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hstu.data.readers import read_source
from hstu.data.split import SplitOptions, write_split
from hstu.data.synthetic import Shape, synthesize

if TYPE_CHECKING:
    from pathlib import Path


def config_data(**train: Any) -> dict[str, Any]:
    """A config as plain data."""
    return {
        "model": {
            "dim": 8,
            "blocks": 1,
            "heads": 2,
            "dqk": 4,
            "dv": 4,
            "history_length": 10,
            "out_len": 11,
            "input_dropout": 0.1,
            "linear_dropout": 0.1,
            "temperature": 0.05,
        },
        "train": {
            "epochs": 4,
            "batch_users": 16,
            "learning_rate": 0.005,
            "betas": [0.9, 0.98],
            "weight_decay": 0.0,
            "negatives": 8,
        }
        | train,
    }


def make_split(folder: Path) -> Path:
    """The split of a small synthetic data set."""
    shape = Shape(users=40, items=40, genres=4, shortest=4, longest=20)
    synthesize(1, folder / "raw", shape)
    write_split(read_source(folder / "raw"), "synthetic", folder / "split", SplitOptions())
    return folder / "split"
