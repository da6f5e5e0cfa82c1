"""The recommender: its configuration, its network, its checkpoints and its scores.

``build`` makes a fresh network, ``save`` and ``load`` keep it, ``score_histories`` ranks with it.
"""

from hstu.config import ExperimentConfig, ModelConfig, TrainConfig, read_config
from hstu.models.checkpoint import load, save, start_from, withdraw
from hstu.models.hstu import Hstu, build
from hstu.models.scoring import History, score_histories

__all__ = [
    "ExperimentConfig",
    "History",
    "Hstu",
    "ModelConfig",
    "TrainConfig",
    "build",
    "load",
    "read_config",
    "save",
    "score_histories",
    "start_from",
    "withdraw",
]
