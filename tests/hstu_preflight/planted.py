"""A small split, and models with one fault planted in their source."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import hstu.models.hstu as pristine
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
    """The model's module with (find, replacement) edits; its ``build`` makes that model."""
    source = Path(pristine.__file__).read_text()
    for find, replacement in edits:
        assert source.count(find) == 1, f"{find!r} occurs {source.count(find)} times"
        source = source.replace(find, replacement)
    module = ModuleType("edited_hstu")
    code = compile(source, "edited_hstu.py", "exec", dont_inherit=True)
    exec(code, module.__dict__)
    return module
