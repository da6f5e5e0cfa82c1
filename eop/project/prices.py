"""The project's price table, and the models of its agents that are not in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eop.agents.gateway.prices import Prices, load
from eop.core.yaml_files import read_yaml

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

PRICES_FILE = "config/prices.yaml"
_SCHEMA_FILE = "config/schemas/prices.schema.yaml"


def read_prices(root: Path) -> Prices:
    """The table of the project at ``root``; EOP876 when it is wrong."""
    return load(root / PRICES_FILE, read_yaml(root / _SCHEMA_FILE))


def unpriced(root: Path, agents: Mapping[str, Any]) -> dict[str, str]:
    """Products whose model has no price, with the model; ``agents`` are their checked settings."""
    prices = read_prices(root)
    models = {name: given["model"] for name, given in agents.items() if "model" in given}
    return {name: model for name, model in models.items() if prices.of(model) is None}
