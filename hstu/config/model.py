"""The ``model`` section: the shape of the network."""

from __future__ import annotations

from dataclasses import dataclass

from hstu.config.sections import require


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Shape of the network. Two configs with equal values build networks of equal shape."""

    dim: int
    blocks: int
    heads: int
    dqk: int
    dv: int
    history_length: int
    out_len: int
    input_dropout: float
    linear_dropout: float
    temperature: float

    @property
    def width(self) -> int:
        """N, the padded width of the reference: attention is divided by it."""
        return self.history_length + self.out_len

    def __post_init__(self) -> None:
        for name in ("dim", "blocks", "heads", "dqk", "dv", "history_length", "out_len"):
            require(getattr(self, name) >= 1, f"model.{name}", "must be at least 1")
        for name in ("input_dropout", "linear_dropout"):
            require(0 <= getattr(self, name) < 1, f"model.{name}", "must be in [0, 1)")
        require(self.temperature > 0, "model.temperature", "must be above 0")
