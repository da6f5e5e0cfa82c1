from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from training_samples import experiment, make_split

from hstu.data.items import Items
from hstu.training import train

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def split(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    return make_split(tmp_path_factory.mktemp("training_data"))


@pytest.fixture(scope="session")
def items(split: Path) -> Items:
    return Items.read(split / "items.parquet").counted([split / "train.parquet"])


@pytest.fixture(scope="session")
def baseline(split: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of the experiment without changes."""
    out = tmp_path_factory.mktemp("baseline")
    train(experiment(), split, out)
    return out
