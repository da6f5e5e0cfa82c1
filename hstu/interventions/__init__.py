"""Named changes of the baseline, one module each; the experiment config says which are on."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

import torch
from torch import nn

from hstu.interventions.base import AttentionTerms, Intervention
from hstu.interventions.boost_last import BoostLast
from hstu.interventions.boost_loss import BoostLoss
from hstu.interventions.elapsed_decay import ElapsedDecay
from hstu.interventions.film import Film
from hstu.interventions.focal import Focal
from hstu.interventions.input_compression import InputCompression
from hstu.interventions.mpta import Mpta
from hstu.interventions.position_averaging import PositionAveraging
from hstu.interventions.scoring_head import ScoringHead
from hstu.interventions.side_features import SideFeatures

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hstu.config import ExperimentConfig
    from hstu.data.items import Items

__all__ = ["REGISTRY", "AttentionTerms", "Intervention", "build_interventions"]

REGISTRY: Mapping[str, type[Intervention]] = {
    "side_features": SideFeatures,
    "input_compression": InputCompression,
    "film": Film,
    "elapsed_decay": ElapsedDecay,
    "boost_last": BoostLast,
    "scoring_head": ScoringHead,
    "position_averaging": PositionAveraging,
    "mpta": Mpta,
    "focal": Focal,
    "boost_loss": BoostLoss,
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
                built[field.name] = REGISTRY[field.name](section, config.model, items)
    return built
