from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from trial import BASE, make_split

from hstu.preflight.bench import Bench

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def split(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    return make_split(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="session")
def bench(split: Path) -> Bench:
    """Half a hundred users of a tiny experiment without interventions."""
    return Bench.load(BASE, split)
