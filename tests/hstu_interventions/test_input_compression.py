"""Tiered input compression: one recurrence in three forms, and a gate that can open."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from trial import training_step, with_interventions

from hstu.data.errors import HstuError
from hstu.interventions import input_compression
from hstu.interventions.input_compression import read_states

if TYPE_CHECKING:
    from torch import Tensor

    from hstu.preflight.bench import Bench

TIERS, STATE, SIZE = 2, 3, 4


def tokens(width: int, seed: int, decay: float = 1.0) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Queries, keys, values and logarithms of the decay of two users, in float64."""
    random = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> Tensor:
        return torch.randn(2, width, TIERS, *shape, generator=random, dtype=torch.float64)

    return draw(STATE), draw(STATE), draw(SIZE), -decay * draw().abs()


def recurrent(q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor) -> Tensor:
    """The definition, token by token, user by user."""
    answers = torch.zeros_like(v)
    for user in range(len(q)):
        for tier in range(TIERS):
            state = q.new_zeros(STATE, SIZE)
            for t in range(q.shape[1]):
                state = log_decay[user, t, tier].exp() * state
                state = state + torch.outer(k[user, t, tier], v[user, t, tier])
                answers[user, t, tier] = state.T @ q[user, t, tier]
    return answers


@settings(max_examples=25, deadline=None)
@given(width=st.integers(1, 13), chunk=st.integers(1, 15), seed=st.integers(0, 99))
def test_chunks_of_any_size_are_the_recurrence(width: int, chunk: int, seed: int) -> None:
    """A chunk of one is the recurrent form, one of the whole width the dual form."""
    given_tokens = tokens(width, seed)
    found = read_states(*given_tokens, chunk=chunk)
    torch.testing.assert_close(found, recurrent(*given_tokens), rtol=1e-12, atol=1e-12)


def test_a_fast_decay_neither_underflows_nor_loses_its_gradient() -> None:
    q, k, v, log_decay = (part.float() for part in tokens(40, 0, decay=60.0))
    log_decay.requires_grad_()
    found = read_states(q, k, v, log_decay, chunk=64)
    expected = recurrent(q.double(), k.double(), v.double(), log_decay.detach().double())
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-5)
    found.sum().backward()
    assert log_decay.grad is not None
    assert log_decay.grad.isfinite().all()


def test_without_memory_a_token_answers_for_itself() -> None:
    q, k, v, _ = tokens(9, 1)
    found = read_states(q, k, v, torch.full((2, 9, TIERS), -1e4, dtype=q.dtype), chunk=4)
    torch.testing.assert_close(found, (q * k).sum(-1, keepdim=True) * v)


def test_tiers_start_at_their_half_lives(bench: Bench) -> None:
    model = with_interventions(bench, input_compression={"half_lives": [8, 32]}).fresh()
    module = model.interventions["input_compression"]
    rates = torch.nn.functional.softplus(module.decay_bias.detach())
    torch.testing.assert_close(torch.exp(-rates * torch.tensor([8.0, 32.0])), torch.full((2,), 0.5))
    assert not module.decay.any()


def test_what_is_remembered_fades(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a tier's half-life, a state that nothing is added to is half of what it was."""
    seen: list[Tensor] = []

    def watched(q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor) -> Tensor:
        seen.append(log_decay)
        return read_states(q, k, v, log_decay)

    monkeypatch.setattr(input_compression, "read_states", watched)
    model = with_interventions(bench, input_compression={"half_lives": [4, 16]}).fresh().eval()
    model.encode(bench.batch(2).inputs)
    left = (seen[0][0, 0] * torch.tensor([4.0, 16.0])).exp()
    torch.testing.assert_close(left, torch.full((2,), 0.5))


def test_the_gate_learns_first_and_opens_the_way_for_the_rest(bench: Bench) -> None:
    """A zero gate before zero weights would never learn."""
    model = with_interventions(bench, input_compression={}).fresh()
    prefix = "interventions.input_compression."
    first = training_step(model, bench.rows)
    assert first[f"{prefix}gate"].any()
    assert not first[f"{prefix}out"].any()
    with torch.no_grad():
        model.interventions["input_compression"].gate -= 0.01 * first[f"{prefix}gate"].sign()
    second = training_step(model, bench.rows)
    names = ("key", "query", "value", "out", "decay", "decay_bias")
    assert all(second[prefix + name].any() for name in names)


def test_more_tiers_than_dimensions_are_refused(bench: Bench) -> None:
    crowded = with_interventions(bench, input_compression={"half_lives": [8] * 9})
    with pytest.raises(HstuError, match="9 tiers cannot share 8 dimensions"):
        crowded.fresh()
