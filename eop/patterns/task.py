"""What a pattern is given: one phase of one run, with everything that its agents may see."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from eop.agents.contract import Limits
from eop.agents.gateway.prices import NO_PRICES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from eop.agents.contract import Product
    from eop.agents.gateway.prices import Prices
    from eop.agents.jail import Jail
    from eop.agents.target import Target
    from eop.protocol.model import Phase
    from eop.protocol.prompts import Prompt

EXPERIMENT = "experiment.yaml"
EXPERIMENT_OUTPUT = "experiment"


@dataclass(frozen=True)
class Task:
    """The work of one agent phase instance.

    ``prompt`` is the phase's body and what was recalled for it, ``prompts`` the templates that each
    node is told it by. ``base`` is the directory that
    workspaces start from: the snapshot with the champion's patch, and ``experiment.yaml``.
    ``snapshot`` is the pinned snapshot alone; delivered patches apply to it. ``directory`` is
    the node's folder; ``work/`` and ``artifacts/`` below it are the pattern's. ``products`` maps
    product names to adapters, ``schemas`` schema names to JSON Schemas. ``item`` is the
    proposal of a branch; its ``slug`` is all that names it to a product. ``check(tree, out)``
    examines the exported tree, may write into the empty folder ``out``, and returns a JSON
    report with a boolean ``passed``. ``limits`` hold where the phase's budget sets none;
    ``hidden`` paths stay out of every agent's reach. ``prices`` is what the gateway before each
    model counts dollars by.
    """

    run: str
    node: str
    phase: Phase
    prompt: str
    base: Path
    snapshot: Path
    directory: Path
    products: Mapping[str, Product]
    jail: Jail
    target: Target
    iteration: int
    prompts: Mapping[str, Prompt] = field(default_factory=dict)
    inputs: Mapping[str, Path] = field(default_factory=dict)
    schemas: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    item: dict[str, Any] | None = None
    check: Callable[[Path, Path], Path] | None = None
    limits: Limits = field(default_factory=Limits)
    hidden: tuple[Path, ...] = ()
    prices: Prices = NO_PRICES
