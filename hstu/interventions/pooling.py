"""Pooling of a sequence that never looks ahead."""

from __future__ import annotations

import torch
from torch import Tensor


def causal_mean(x: Tensor, decay: float = 1.0) -> Tensor:
    """Row t of the result [B, W, D] is the mean of rows 0..t of ``x`` [B, W, D].

    A row that is k older than t weighs ``decay**k``: 1 is the plain mean, 0 the last row alone.
    Padding on the right reaches no valid row.
    """
    place = torch.arange(x.shape[1], device=x.device)
    age = (place[:, None] - place).clamp(min=0)
    weights = torch.pow(decay, age.to(x.dtype)).tril()  # row t: the query, column j: the event
    mean: Tensor = (weights / weights.sum(1, keepdim=True)) @ x
    return mean
