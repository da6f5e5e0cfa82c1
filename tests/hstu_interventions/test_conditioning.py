"""FiLM, the scoring head and averaged queries: what they pool, and of whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from trial import with_interventions

from hstu.interventions.pooling import causal_mean
from hstu.interventions.position_averaging import without_oldest
from hstu.models.hstu import unit

if TYPE_CHECKING:
    from hstu.models import Hstu
    from hstu.preflight.bench import Bench


@settings(max_examples=25, deadline=None)
@given(width=st.integers(1, 9), decay=st.sampled_from([0.0, 0.3, 0.7, 1.0]))
def test_the_causal_mean_is_that_of_the_events_so_far(width: int, decay: float) -> None:
    x = torch.randn(2, width, 3, generator=torch.Generator().manual_seed(width))
    found = causal_mean(x, decay)
    for t in range(width):
        weights = torch.tensor([decay ** (t - j) for j in range(t + 1)])
        expected = (weights[:, None] * x[:, : t + 1]).sum(1) / weights.sum()
        torch.testing.assert_close(found[:, t], expected)


def test_without_decay_the_causal_mean_is_the_last_row_to_the_bit() -> None:
    x = torch.randn(3, 17, 5)
    assert torch.equal(causal_mean(x, 0.0), x)


def film_of(bench: Bench) -> tuple[Hstu, torch.nn.Module]:
    model = with_interventions(bench, film={}).fresh().eval()
    return model, model.interventions["film"]


def test_film_starts_by_scaling_with_one_and_shifting_by_zero(bench: Bench) -> None:
    _, film = film_of(bench)
    x, items = torch.randn(4, 6, 8), torch.randn(4, 6, 8)
    assert torch.equal(film.inputs(x, items, bench.batch(4).inputs), x)


def test_film_reads_each_users_own_history(bench: Bench) -> None:
    """With as many users as events, a [B, D] condition would broadcast to the wrong axis."""
    _, film = film_of(bench)
    torch.nn.init.normal_(film.scale.weight)
    torch.nn.init.normal_(film.shift.weight)
    x, items = torch.randn(6, 6, 8), torch.randn(6, 6, 8)
    batch = bench.batch(6).inputs
    found = film.inputs(x, items, batch)
    swapped = [1, 0, *range(2, 6)]
    torch.testing.assert_close(film.inputs(x, items[swapped], batch)[2:], found[2:])
    assert not torch.allclose(film.inputs(x, items[swapped], batch)[:2], found[:2])
    torch.testing.assert_close(film.inputs(x[swapped], items[swapped], batch), found[swapped])


def test_films_condition_teaches_the_item_table(bench: Bench) -> None:
    _, film = film_of(bench)
    torch.nn.init.normal_(film.scale.weight)
    items = torch.randn(2, 5, 8, requires_grad=True)
    film.inputs(torch.randn(2, 5, 8), items, bench.batch(2).inputs).sum().backward()
    assert items.grad is not None
    assert items.grad.any()


@pytest.mark.parametrize("training", [False, True])
def test_one_query_scores_as_the_sum_of_the_facets(bench: Bench, *, training: bool) -> None:
    changed = with_interventions(bench, scoring_head={"recent_logit": 0.5})
    model = changed.perturbed().train(training)
    head = model.interventions["scoring_head"]
    outputs, batch = torch.randn(4, 7, 8), bench.batch(4).inputs
    query = unit(head.outputs(outputs, batch))
    weights = head.logits.softmax(0)
    table = unit(model.item_table()[1:])
    facets = zip(weights, head.facets(outputs), strict=True)
    summed = sum(weight * unit(facet) @ table.T for weight, facet in facets)
    single = query @ table.T
    # Equal up to the user's temperature, so that the ranking is equal.
    factor = summed.norm(dim=-1, keepdim=True) / single.norm(dim=-1, keepdim=True)
    torch.testing.assert_close(single * factor, summed, rtol=0, atol=1e-5)
    best = single.topk(10).indices
    assert torch.equal(best, summed.topk(10).indices)


def test_the_facets_differ_in_what_they_remember(bench: Bench) -> None:
    head = with_interventions(bench, scoring_head={}).fresh().interventions["scoring_head"]
    recent, lasting = head.facets(torch.randn(2, 12, 8))
    torch.testing.assert_close(recent[:, 0], lasting[:, 0])
    assert (unit(recent)[:, -1] * unit(lasting)[:, -1]).sum(-1).max() < 0.98


def test_a_view_is_the_history_without_its_oldest_events(bench: Bench) -> None:
    batch = bench.batch(12).inputs
    for count in (1, 2, 3):
        view = without_oldest(batch, count)
        for user, length in enumerate(batch.lengths.tolist()):
            dropped = min(count, length - 1)
            kept = length - dropped
            assert int(view.lengths[user]) == kept
            for before, after in zip(batch[:3], view[:3], strict=True):
                assert torch.equal(after[user, :kept], before[user, dropped:length])
                assert not after[user, kept:].any()


def test_a_query_is_the_direction_of_the_sum_of_its_views(bench: Bench) -> None:
    model = with_interventions(bench, position_averaging={"views": 3}).perturbed().eval()
    batch = bench.batch(12).inputs
    assert int(batch.lengths.min()) < 3, "some history must be shorter than the views"
    with torch.no_grad():
        encoded = [model.encode(without_oldest(batch, count)) for count in (2, 0, 1)]
        rows, lengths = torch.arange(12), batch.lengths - 1
        ends = [lengths - lengths.clamp(max=count) for count in (2, 0, 1)]
        total = sum(part[rows, end] for part, end in zip(encoded, ends, strict=True))
        torch.testing.assert_close(model.query(batch), unit(total))


def test_views_leave_training_alone(bench: Bench) -> None:
    model = with_interventions(bench, position_averaging={"views": 3}).fresh().eval()
    batch = bench.batch(8).inputs
    assert torch.equal(model.encode(batch), bench.fresh().eval().encode(batch))
