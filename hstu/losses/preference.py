"""Losses of pairs of a wanted item w and a rejected one l in the same context.

f is a score divided by the temperature, so that a softmax over it is the model's probability; the
softmax's denominator is the same for both items and cancels. With the frozen reference's scores,

    margin = f(w) - f(l)        delta = margin - margin_reference
    DPO    -log sigmoid(beta * delta)
    IPO    (delta - 1 / (2 * beta))^2
    SimPO  -log sigmoid(beta * margin - gamma)

All are [P], one a pair.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch.nn import functional

if TYPE_CHECKING:
    from torch import Tensor


def dpo(delta: Tensor, *, beta: float) -> Tensor:
    """Direct preference optimisation: log 2 where nothing was gained on the reference."""
    return -functional.logsigmoid(beta * delta)


def ipo(delta: Tensor, *, beta: float) -> Tensor:
    """Identity preference optimisation: gains beyond 1 / (2 beta) are penalised too."""
    return (delta - 1 / (2 * beta)) ** 2


def simpo(margin: Tensor, *, beta: float, gamma: float) -> Tensor:
    """Simple preference optimisation: no reference, a target margin ``gamma``.

    One item is a sequence of length 1, so there is no length to normalise by.
    """
    return -functional.logsigmoid(beta * margin - gamma)
