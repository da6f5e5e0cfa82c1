"""Attempts at invocations for tests: a fake product that is any Python script."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from eop.agents import patch, workspace
from eop.agents.contract import (
    Command,
    Limits,
    Mode,
    ProductFacts,
    Recording,
    Request,
    Result,
    Turn,
)
from eop.agents.events import Event
from eop.agents.gateway.prices import NO_PRICES, Prices
from eop.agents.invoke import invoke
from eop.agents.jail import Jail, Level, available, choose
from eop.agents.stream import json_lines

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from eop.agents.contract import Product

STARTED = """
import json, os, signal, subprocess, sys, time
from pathlib import Path
def say(kind, **data): print(json.dumps({"type": kind, **data}), flush=True)
say("started")
"""
DONE = '\nsay("final", status="success", text="done")\n'
OPEN = Jail(Level.NONE)
BEST = choose("auto", trusted=True)
EACH_JAIL = [
    pytest.param(
        Jail(level),
        id=level,
        marks=pytest.mark.skipif(level not in available(), reason=f"{level} does not work here"),
    )
    for level in (Level.BWRAP, Level.LANDLOCK)
]


@dataclass(frozen=True)
class Fake:
    script: str
    name: str = "fake"
    vendor: str = "fake"
    trusted: bool = True
    answers: bool = False
    capabilities: frozenset[str] = frozenset({"read", "edit"})
    sessions: tuple[str, ...] = ()

    def probe(self) -> ProductFacts:
        return ProductFacts(self.name, "0", "0" * 64)

    def upstream(self) -> None:
        return None

    def command(self, request: Request) -> Command:
        return Command((sys.executable, "-I", "-c", self.script))

    def parse(self, recording: Recording) -> list[Event]:
        lines = [line or {"type": "other"} for line in json_lines(recording.stdout)]
        return [Event(str(line.get("type")), line) for line in lines]


def attempt(
    folder: Path,
    script: str = "",
    *,
    product: Product | None = None,
    jail: Jail = OPEN,
    files: Mapping[str, str] | None = None,
    inputs: Mapping[str, Path] | None = None,
    mode: Mode = Mode.WRITE,
    prices: Prices = NO_PRICES,
    **changes: Any,
) -> Result:
    """Invoke ``product``, else one that runs ``script``, on a small tree.

    ``changes`` are fields of the request.
    """
    base = folder / "base"
    for name, text in (files or {"models/a.py": "a = 1\n", "judge.py": "j = 1\n"}).items():
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_text(text)
    store = patch.init_store(folder / "store.git")
    tree = patch.commit_tree(store, base)
    directory = folder / "attempt"
    _, priors = workspace.create(directory, store, tree, inputs or {}, "Do the work.\n")
    values: dict[str, Any] = {
        "turn": Turn("run", "it01_implement", "implement", "implementer", 1),
        "product": product.name if product else "fake",
        "task": "Do the work.\n",
        "directory": directory,
        "store": store,
        "base": tree,
        "mode": mode,
        "editable": ("models/**",),
        "capabilities": ("read", "edit"),
        "limits": Limits(wall_s=20, idle_s=20, grace_s=0.3),
        "inputs": priors,
    }
    return invoke(product or Fake(script), Request(**{**values, **changes}), jail, prices)
