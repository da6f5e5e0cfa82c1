"""Elapsed decay and the boost of the newest events: gaps, places, and who is touched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
from trial import training_step, with_interventions

from hstu.data.batches import Batch
from hstu.interventions.elapsed_decay import elapsed_days

if TYPE_CHECKING:
    from hstu.interventions import Intervention
    from hstu.preflight.bench import Bench

DAY_S = 86_400
EPOCH_S = 1_800_000_000
FORMS = ("additive", "multiplicative")


def batch_at(*stamps: int, request: int) -> Batch:
    """One user's events at ``stamps``, asked for at ``request``."""
    times = torch.tensor([stamps])
    nexts = torch.tensor([[*stamps[1:], request]])
    return Batch(torch.ones_like(times), times, nexts, torch.tensor([len(stamps)]))


def decay_of(bench: Bench, **block: Any) -> Intervention:
    changed = with_interventions(bench, elapsed_decay={"start": 1.0, **block})
    module: Intervention = changed.fresh().interventions["elapsed_decay"]  # type: ignore[assignment]
    return module


def effect(module: Intervention, batch: Batch) -> torch.Tensor:
    """What is added to the scores, or the logarithm of what multiplies attention [H, W, W]."""
    terms = module.attention(batch, 0)
    assert terms is not None
    found = terms.added if terms.factor is None else terms.factor.log()
    assert found is not None
    return found[0].detach()


def test_gaps_are_exact_days_and_never_negative() -> None:
    """A float32 stamp of this size is exact to 128 seconds only."""
    batch = batch_at(EPOCH_S, EPOCH_S + 1, EPOCH_S + 2, request=EPOCH_S - DAY_S)
    days = elapsed_days(batch)[0] * DAY_S
    torch.testing.assert_close(days[0], torch.tensor([1.0, 0.0, 0.0]))
    torch.testing.assert_close(days[1], torch.tensor([2.0, 1.0, 0.0]))
    assert not days[2].any()


@pytest.mark.parametrize("form", FORMS)
def test_the_decay_is_one_without_a_gap_and_falls_with_it(form: str, bench: Bench) -> None:
    module = decay_of(bench, form=form)
    gaps = [0, 1, 60, 3600, DAY_S, 30 * DAY_S, 3650 * DAY_S]
    request = EPOCH_S + gaps[-1]
    batch = batch_at(*(request - gap for gap in reversed(gaps)), request=request)
    last = effect(module, batch)[:, -1].flip(-1)  # [H, gaps], the smallest first
    assert not last[:, 0].any()
    assert (last.diff(dim=-1) < 0).all()


def test_the_forms_are_as_defined(bench: Bench) -> None:
    batch = batch_at(EPOCH_S, request=EPOCH_S + 4 * DAY_S)
    additive = effect(decay_of(bench, form="additive", scales_days=[1, 2]), batch)
    torch.testing.assert_close(additive.flatten(), -torch.tensor([5.0, 3.0]).log())
    multiplicative = effect(decay_of(bench, form="multiplicative"), batch)
    torch.testing.assert_close(multiplicative.flatten(), torch.tensor([-2.0, -2.0]))


@pytest.mark.parametrize("form", FORMS)
def test_the_decay_knows_gaps_and_not_the_calendar(form: str, bench: Bench) -> None:
    module, inputs = decay_of(bench, form=form), bench.batch(8).inputs
    later = inputs._replace(
        timestamps=inputs.timestamps + EPOCH_S, next_timestamps=inputs.next_timestamps + EPOCH_S
    )
    assert torch.equal(effect(module, inputs), effect(module, later))


@pytest.mark.parametrize("form", FORMS)
def test_the_rate_learns_from_the_first_step(form: str, bench: Bench) -> None:
    model = with_interventions(bench, elapsed_decay={"form": form}).fresh()
    step = training_step(model, bench.rows)
    assert step["interventions.elapsed_decay.rate"].all(), "every block and head"


def test_the_boost_counts_from_each_users_own_length(bench: Bench) -> None:
    model = with_interventions(bench, boost_last={"boost": 2.0, "last": 2}).fresh().eval()
    inputs = bench.batch(10).inputs
    terms = model.interventions["boost_last"].attention(inputs, 0)
    boosted = terms.factor[:, 0, 0] == 2
    assert boosted.sum(1).tolist() == inputs.lengths.clamp(max=2).tolist()
    for user, length in enumerate(inputs.lengths.tolist()):
        assert boosted[user, max(0, length - 2) : length].all()


def test_the_boost_is_for_inference_alone(bench: Bench) -> None:
    boosted = with_interventions(bench, boost_last={"boost": 2.0})
    before, after = (training_step(b.perturbed(), bench.rows) for b in (bench, boosted))
    assert torch.equal(before["loss"], after["loss"])
    inputs = bench.batch(8).inputs
    queries = [b.perturbed().eval().query(inputs) for b in (bench, boosted)]
    assert not torch.allclose(*queries)


def test_a_boost_of_all_events_is_cancelled_by_the_norm(bench: Bench) -> None:
    boosted = with_interventions(bench, boost_last={"boost": 2.0, "last": 99})
    inputs = bench.batch(8).inputs
    queries = []
    for changed in (bench, boosted):
        model = changed.perturbed().eval()
        with torch.no_grad():  # so that the norm's epsilon is small against attention
            for block in model.blocks:
                block.uvqk.mul_(30)
            queries.append(model.query(inputs))
    torch.testing.assert_close(*queries, rtol=0, atol=1e-4)
