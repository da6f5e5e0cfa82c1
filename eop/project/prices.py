"""The project's price table, and the models of its agents that are not in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eop.agents.gateway.prices import NO_PRICES, Prices, load
from eop.core.yaml_files import read_yaml

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

PRICES_FILE = "config/prices.yaml"
_SCHEMA_FILE = "config/schemas/prices.schema.yaml"


def read_prices(root: Path) -> Prices:
    """The table of the project at ``root``; EOP876 when it is wrong."""
    return load(root / PRICES_FILE, read_yaml(root / _SCHEMA_FILE))


def unpriced(root: Path, raw: Mapping[str, Any]) -> dict[str, str]:
    """The products of a workflow config whose model has no price, with the model.

    ``raw`` need not be checked. A product without settings is left out: its model is not known.
    """
    agents = raw.get("agents")
    models = {
        name: given["model"]
        for name, given in (agents.items() if isinstance(agents, dict) else ())
        if isinstance(given, dict) and isinstance(given.get("model"), str)
    }
    prices = read_prices(root) if models else NO_PRICES
    return {name: model for name, model in models.items() if prices.of(model) is None}
