"""The ``model`` section: the shape of the network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
    concat_ua: bool = False
    """Whether a block's output is made of [u, a, u * a] instead of u * a alone."""
    encoder: Literal["hstu", "sasrec"] = "hstu"
    """Which layers the network is made of."""
    ffn: int | None = None
    """Width of the feed-forward part of SASRec's layers; HSTU's have none."""

    @property
    def width(self) -> int:
        """N, the padded width of the reference: attention is divided by it."""
        return self.history_length + self.out_len

    @property
    def ffn_width(self) -> int:
        """The width of the feed-forward part; only SASRec's layers have one."""
        if self.ffn is None:
            raise ValueError(f"layers of {self.encoder} have no feed-forward part")
        return self.ffn

    def __post_init__(self) -> None:
        for name in ("dim", "blocks", "heads", "dqk", "dv", "history_length", "out_len"):
            require(getattr(self, name) >= 1, f"model.{name}", "must be at least 1")
        for name in ("input_dropout", "linear_dropout"):
            require(0 <= getattr(self, name) < 1, f"model.{name}", "must be in [0, 1)")
        require(self.temperature > 0, "model.temperature", "must be above 0")
        if self.encoder == "sasrec":
            self._check_sasrec()
        else:
            require(self.ffn is None, "model.ffn", "is for encoder sasrec: HSTU has no such layer")

    def _check_sasrec(self) -> None:
        require(self.ffn is not None and self.ffn >= 1, "model.ffn", "encoder sasrec needs a width")
        require(not self.concat_ua, "model.concat_ua", "is for encoder hstu")
        for name in ("dqk", "dv"):
            fits = getattr(self, name) * self.heads == self.dim
            require(fits, f"model.{name}", "must be dim / heads for encoder sasrec")
