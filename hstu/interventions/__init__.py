"""Named changes of the baseline, one module each; the experiment config says which are on."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

import torch
from torch import nn

from hstu.interventions.base import AttentionTerms, Intervention
from hstu.interventions.film import Film

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hstu.config import ExperimentConfig
    from hstu.data.items import Items

__all__ = ["AttentionTerms", "Intervention", "build_interventions"]

_MODULES: Mapping[str, type[Intervention]] = {
    "film": Film,
}


def build_interventions(config: ExperimentConfig, items: Items) -> nn.ModuleDict:
    """The interventions that ``config`` names, in the order of its fields.

    Each is built with a generator of its own, so that the baseline's draws (initial weights and
    dropout) stay what they are without it.
    """
    built = nn.ModuleDict()
    for field in fields(config.interventions):
        section = getattr(config.interventions, field.name)
        if section is not None:
            with torch.random.fork_rng(devices=[]):
                built[field.name] = _MODULES[field.name](section, config.model, items)
    return built
