"""The experiment config, section by section, and how it is read."""

from hstu.config.experiment import ExperimentConfig, parse_config, read_config
from hstu.config.interventions import Interventions
from hstu.config.model import ModelConfig
from hstu.config.train import TrainConfig

__all__ = [
    "ExperimentConfig",
    "Interventions",
    "ModelConfig",
    "TrainConfig",
    "parse_config",
    "read_config",
]
