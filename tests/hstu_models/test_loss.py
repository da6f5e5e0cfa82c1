"""The chunked loss equals the plain one, in value and in every gradient."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from hstu.losses import sampled_softmax

TEMPERATURE = 0.05


def plain(
    queries: Tensor, positives: Tensor, table: Tensor, targets: Tensor, negatives: Tensor
) -> Tensor:
    """The definition, with every drawn row gathered."""
    target = (queries * positives).sum(-1, keepdim=True) / TEMPERATURE
    others = (table[negatives] * queries[:, None]).sum(-1) / TEMPERATURE
    others = others.masked_fill(negatives == targets[:, None], -5e4)
    return -torch.cat([target, others], 1).log_softmax(1)[:, 0]


def compare(tokens: int, items: int, draws: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)

    def unit(rows: int) -> Tensor:
        made = torch.randn(rows, 6, generator=generator, dtype=torch.float64)
        return torch.nn.functional.normalize(made, dim=-1)

    targets = torch.randint(1, items + 1, (tokens,), generator=generator)
    negatives = torch.randint(1, items + 1, (tokens, draws), generator=generator)
    weights = torch.rand(tokens, generator=generator, dtype=torch.float64)
    table = unit(items + 1)
    leaves = [
        [part.clone().requires_grad_() for part in (unit_q, table[targets], table)]
        for unit_q in [unit(tokens)]
        for _ in range(2)
    ]
    ours = sampled_softmax(*leaves[0], targets, negatives, temperature=TEMPERATURE)
    theirs = plain(*leaves[1], targets, negatives)
    torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)
    (ours * weights).sum().backward()
    (theirs * weights).sum().backward()
    for mine, other in zip(leaves[0], leaves[1], strict=True):
        torch.testing.assert_close(mine.grad, other.grad, rtol=1e-9, atol=1e-9)


@settings(max_examples=25, deadline=None)
@given(
    tokens=st.integers(1, 40),
    items=st.integers(2, 30),
    draws=st.integers(1, 7),
    seed=st.integers(0, 2**31),
)
def test_equals_the_definition(tokens: int, items: int, draws: int, seed: int) -> None:
    compare(tokens, items, draws, seed)


@pytest.mark.parametrize("items", [50, 500])  # one product with the table; gathered rows
def test_many_chunks_and_both_ways_to_score(items: int) -> None:
    compare(tokens=700, items=items, draws=3, seed=0)
