"""A small split, and models with one fault planted in their source."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

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
