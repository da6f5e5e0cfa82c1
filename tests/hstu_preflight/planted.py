"""A small split, and models with one fault planted in their source."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd

import hstu.kernels.attention
import hstu.models.hstu
from hstu.data.readers import read_source
from hstu.data.split import SplitOptions, write_split
from hstu.data.synthetic import Shape, synthesize

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "config" / "experiments" / "synthetic.yaml"
PLAYBOOK = ROOT / "config" / "playbooks" / "demo"


def make_split(folder: Path) -> Path:
    """The split of a small synthetic data set."""
    synthesize(3, folder / "raw", Shape(users=160, items=120, genres=6, longest=30))
    write_split(read_source(folder / "raw"), "synthetic", folder / "split", SplitOptions())
    return folder / "split"


def make_repeating_split(folder: Path) -> Path:
    """A split whose users come back to four of 60 items, as people do to places."""
    rng = np.random.default_rng(4)
    events = [
        (user, item, 1_000_000 + 3600 * place)
        for user in range(1, 81)
        for place, item in enumerate(rng.choice(rng.integers(1, 61, 4), 24).tolist())
    ]
    (folder / "raw").mkdir()
    frame = pd.DataFrame(events, columns=["user_id", "item_id", "timestamp"])
    frame.to_parquet(folder / "raw" / "interactions.parquet")
    write_split(read_source(folder / "raw"), "places", folder / "split", SplitOptions())
    return folder / "split"


def model_with(*edits: tuple[str, str]) -> ModuleType:
    """The model's module with (find, replacement) edits; its ``build`` makes that model.

    An edit is made where its text stands: in the model's source or in that of its attention.
    """
    attention = Path(hstu.kernels.attention.__file__).read_text()
    model = Path(hstu.models.hstu.__file__).read_text()
    for find, replacement in edits:
        places = (attention + model).count(find)
        assert places == 1, f"{find!r} occurs {places} times"
        attention, model = (text.replace(find, replacement) for text in (attention, model))
    edited = _module("edited_attention", attention)
    module = _module("edited_hstu", model)
    module.__dict__["gated_attention"] = edited.gated_attention
    return module


def _module(name: str, source: str) -> ModuleType:
    module = ModuleType(name)
    module.__dict__["__name__"] = name
    code = compile(source, f"{name}.py", "exec", dont_inherit=True)
    exec(code, module.__dict__)
    return module
