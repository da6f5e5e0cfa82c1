"""The functions that a protocol may name."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from eop.functions.context import Context

# Name to module. A module is loaded when its function runs: a job pays for what it uses.
FUNCTIONS = {
    "baseline": "baseline",
    "recipes": "recipes",
    "compose": "recipes",
    "preflight": "candidate",
    "train": "candidate",
    "evaluate": "candidate",
    "refit": "candidate",
    "promote": "promote",
    "publish": "publish",
    "screen": "screening",
    "summarize": "learning",
    "contradictions": "learning",
    "reconcile": "learning",
    "pick": "picking",
}


def function(name: str) -> Callable[[Context], Path]:
    """The function ``name``; it returns the file of its phase's one output.

    It raises ``CandidateError`` when the candidate, not the machine, is at fault.
    """
    module = import_module(f"eop.functions.{FUNCTIONS[name]}")
    found: Callable[[Context], Path] = getattr(module, name)
    return found
