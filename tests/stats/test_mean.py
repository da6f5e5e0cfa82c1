"""The interval of a model's own NDCG@10."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eop.core.errors import EopError
from eop.stats import Ranks, contribution, mean_interval, seed_noise


@given(st.lists(st.lists(st.integers(1, 30), min_size=5, max_size=5), min_size=1, max_size=4))
def test_it_holds_the_mean_and_goes_by_no_order(ranks):
    users = np.arange(5)
    low, high = mean_interval([Ranks.of(users, own) for own in ranks])
    mean = contribution(np.array(ranks)).mean()
    assert -1e-12 <= low - 1e-12 <= mean <= high + 1e-12 <= 1 + 1e-12
    if low > 0 and high < 1:
        assert low + high == pytest.approx(2 * mean)
    turned = mean_interval([Ranks.of(users, own[::-1]) for own in reversed(ranks)])
    assert turned == pytest.approx((low, high))


@pytest.mark.parametrize(("shared", "seeds"), [(0.0, 1), (0.0, 3), (0.05, 3)])
def test_it_covers_the_truth_about_as_often_as_it_says(shared, seeds):
    generator = np.random.default_rng(5)
    users, covered = np.arange(300), 0
    for _ in range(400):
        chance = generator.normal(0.4, 0.1, 300)
        moves = generator.normal(0, shared, seeds)
        hits = [generator.random(300) < chance + move for move in moves]
        low, high = mean_interval([Ranks.of(users, np.where(hit, 1, 50)) for hit in hits])
        covered += low <= 0.4 <= high
    assert 0.92 <= covered / 400 <= 0.99


def test_one_seed_speaks_of_users_only_and_seeds_that_disagree_widen_it():
    users, lucky = np.arange(100), np.arange(100) % 10
    one = Ranks.of(users, np.where(lucky < 4, 1, 50))
    other = Ranks.of(users, np.where(lucky < 6, 1, 50))
    alone, both = mean_interval([one]), mean_interval([one, other])
    assert both[1] - both[0] > 2 * (alone[1] - alone[0])


def test_the_noise_of_other_models_counts_where_it_says_more():
    users = np.arange(1000)
    steady = [Ranks.of(users, np.where(users % 2 == 0, 1, 50))] * 2
    shaky = [Ranks.of(users, np.where(users % 10 < share, 1, 50)) for share in (3, 7)]
    few = mean_interval(shaky)
    assert few == (0.0, 1.0), "two seeds that disagree say next to nothing"
    many = mean_interval(shaky, seed_noise([shaky, *[steady] * 9]))
    assert few[0] < many[0] < many[1] < few[1]
    alone, beside = mean_interval(steady), mean_interval(steady, seed_noise([shaky, shaky]))
    assert beside[1] - beside[0] > 2 * (alone[1] - alone[0])


def test_what_has_no_seed_or_other_users_is_an_error():
    with pytest.raises(EopError, match="EOP652"):
        mean_interval([])
    with pytest.raises(EopError, match=r"EOP652.*1 users"):
        mean_interval([Ranks.of([1], [1])])
