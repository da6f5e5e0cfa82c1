from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eop.core.errors import EopError
from eop.stats import (
    Ranks,
    contribution,
    noise_band,
    paired_difference,
    read_ranks,
    same_seed_difference,
)
from eop.stats.student import quantile


def one_side(draw, users: int) -> list[Ranks]:
    seeds = draw(st.integers(1, 4))
    ranks = st.lists(st.integers(1, 30), min_size=users, max_size=users)
    return [Ranks.of(np.arange(users), draw(ranks)) for _ in range(seeds)]


@st.composite
def two_sides(draw):
    users = draw(st.integers(2, 12))
    return one_side(draw, users), one_side(draw, users)


def plain_ndcg(side: list[Ranks]) -> float:
    """NDCG@10 the slow way: one relevant item, gain only in the first ten places."""
    values = []
    for ranks in side:
        for rank in ranks.ranks:
            gains = [1.0 if place == rank else 0.0 for place in range(1, 11)]
            values.append(sum(g / math.log2(p + 1) for p, g in enumerate(gains, start=1)))
    return sum(values) / len(values)


@given(two_sides())
def test_the_mean_is_the_difference_of_ndcg(sides):
    a, b = sides
    assert paired_difference(a, b).mean == pytest.approx(plain_ndcg(a) - plain_ndcg(b), abs=1e-12)


@given(two_sides())
def test_swapping_the_sides_mirrors_everything(sides):
    a, b = sides
    there, back = paired_difference(a, b), paired_difference(b, a)
    assert there.mean == -back.mean
    assert there.error.value == back.error.value
    assert there.interval95 == (-back.interval95[1], -back.interval95[0])
    assert there.seeds == back.seeds[::-1]


@given(two_sides())
def test_a_model_does_not_differ_from_itself(sides):
    a, _ = sides
    difference = paired_difference(a, a)
    assert difference.mean == 0.0
    low, high = difference.interval95
    assert low <= 0.0 <= high


@given(two_sides(), st.randoms())
def test_the_order_of_users_and_of_seeds_does_not_matter(sides, random):
    a, b = sides
    order = list(range(len(a[0].users)))
    random.shuffle(order)
    shuffled = [Ranks.of(side.users[order], side.ranks[order]) for side in reversed(a)]
    there, again = paired_difference(a, b), paired_difference(shuffled, b)
    assert again.mean == pytest.approx(there.mean, abs=1e-12)
    assert again.error.value == pytest.approx(there.error.value, abs=1e-12)


@given(two_sides())
def test_the_error_holds_both_spreads(sides):
    difference = paired_difference(*sides)
    assert difference.error.value >= difference.error.of_users
    assert (difference.error.of_seeds is None) == (difference.seeds == (1, 1))
    half = quantile(0.975, difference.error.freedom) * difference.error.value
    assert difference.interval95 == (difference.mean - half, difference.mean + half)
    users, seeds = difference.users - 1, sum(difference.seeds) - 2
    assert min(users, seeds or users) <= difference.error.freedom <= users


@given(two_sides())
def test_the_p_value_and_the_interval_say_the_same(sides):
    difference = paired_difference(*sides)
    low, high = difference.interval95
    assert (difference.p < 0.05) == (low > 0 or high < 0) or abs(difference.p - 0.05) < 1e-9


@given(two_sides(), st.floats(0.001, 0.2), st.floats(0.55, 0.95))
def test_what_is_detectable_lies_above_what_is_significant(sides, level, power):
    difference = paired_difference(*sides)
    significant = quantile(1 - level / 2, difference.error.freedom) * difference.error.value
    assert difference.detectable(level, power) >= significant
    assert difference.detectable(level, power, band=1.0) >= 1.0


def test_a_known_case_by_hand():
    a = [Ranks.of([1, 2, 3], [1, 1, 50]), Ranks.of([1, 2, 3], [1, 50, 50])]
    b = [Ranks.of([3, 2, 1], [50, 50, 50])]
    difference = paired_difference(a, b)
    # Per user: 1, 1/2, 0. Seed means of a: 2/3, 1/3, of variance 1/18; b has one seed and borrows
    # it. One user of three moves with the seed: the residual's variance is 1/6, and 1/18 of a mean.
    assert difference.mean == pytest.approx(0.5)
    assert difference.error.of_users == pytest.approx(0.5 / math.sqrt(3))
    assert difference.error.of_seeds == pytest.approx(0.0, abs=1e-8), (
        "the users' spread holds it all"
    )
    assert difference.seeds == (2, 1)


@given(two_sides())
def test_equal_sets_of_seeds_are_compared_as_they_are(sides):
    a, b = (dict(enumerate(side[: min(map(len, sides))])) for side in sides)
    assert same_seed_difference(a, b) == paired_difference(list(a.values()), list(b.values()))


@given(two_sides())
def test_the_mean_is_that_of_the_common_seeds(sides):
    a, b = dict(enumerate(sides[0])), dict(enumerate(sides[1], start=1))
    common = sorted(a.keys() & b.keys())
    if not common:
        with pytest.raises(EopError, match="no seed is common"):
            same_seed_difference(a, b)
        return
    found = same_seed_difference(a, b)
    alone = paired_difference([a[seed] for seed in common], [b[seed] for seed in common])
    assert (found.mean, found.error.of_users, found.seeds) == (
        alone.mean,
        alone.error.of_users,
        (len(common), len(common)),
    )


def test_seeds_beyond_the_common_ones_say_how_much_training_varies():
    users = [1, 2, 3]
    same, other = Ranks.of(users, [1, 1, 1]), Ranks.of(users, [50, 50, 50])
    found = same_seed_difference({1: same}, {1: same, 2: other})
    # Means of the second side's seeds: 1 and 0, variance 1/2; one seed on either side counts.
    assert (found.mean, found.error.of_users) == (0.0, 0.0)
    assert found.error.of_seeds == pytest.approx(1.0)


def test_seeds_that_disagree_widen_the_interval():
    users = np.arange(1000)
    steady = [Ranks.of(users, np.where(users % 2 == 0, 1, 50))] * 3
    shaky = [Ranks.of(users, np.where(users % 10 < share, 1, 50)) for share in (3, 5, 7)]
    base = [Ranks.of(users, np.full(1000, 50))] * 3
    assert paired_difference(steady, base).error.of_seeds == 0.0
    assert (
        paired_difference(shaky, base).error.value > 3 * paired_difference(steady, base).error.value
    )


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    generator = np.random.default_rng(11)
    users, covered = np.arange(300), 0
    for _ in range(300):
        sides = []
        for _side in range(2):
            ranks = [
                np.where(generator.random(300) < 0.4 + generator.normal(0, 0.03), 1, 50)
                for _seed in range(4)
            ]
            sides.append([Ranks.of(users, r) for r in ranks])
        low, high = paired_difference(*sides).interval95
        covered += low <= 0 <= high
    assert 0.90 <= covered / 300 <= 1.0


def test_ranks_beyond_ten_add_nothing():
    found = contribution(np.array([1, 2, 10, 11, 500]))
    assert found.tolist() == pytest.approx([1.0, 1 / math.log2(3), 1 / math.log2(11), 0.0, 0.0])


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        ([], [Ranks.of([1, 2], [1, 1])], "at least one seed"),
        ([Ranks.of([1, 2], [1, 1])], [Ranks.of([1, 3], [1, 1])], "2 differ"),
        ([Ranks.of([1, 2], [1, 1])], [Ranks.of([1, 2, 3], [1, 1, 1])], "1 differ"),
        ([Ranks.of([1], [1])], [Ranks.of([1], [1])], "too few"),
    ],
)
def test_what_cannot_be_compared_is_an_error(a, b, words):
    with pytest.raises(EopError, match=words) as caught:
        paired_difference(a, b)
    assert caught.value.code == "EOP652"


def test_the_noise_band_of_one_seed_is_unknown_and_not_zero():
    assert noise_band([0.2]).half_width is None
    band = noise_band([0.1, 0.2, 0.3])
    assert (band.mean, band.deviation) == (pytest.approx(0.2), pytest.approx(0.1))
    for bad in ([], [0.1, float("nan")]):
        with pytest.raises(EopError):
            noise_band(bad)


def test_ranks_are_read_from_parquet(tmp_path):
    path = tmp_path / "ranks.parquet"
    pd.DataFrame({"user_id": [7, 3], "rank": [1, 40]}).to_parquet(path)
    found = read_ranks(path)
    assert found.users.tolist() == [3, 7]
    assert found.ranks.tolist() == [40, 1]


@pytest.mark.parametrize(
    "frame",
    [
        {"user_id": [1, 1], "rank": [1, 2]},
        {"user_id": [1, 2], "rank": [0, 2]},
        {"user_id": [1, 2], "rank": [1.5, 2.0]},
        {"user_id": [1, 2], "rank": pd.array([1, None], dtype="Int64")},
        {"user_id": [1, 2]},
    ],
)
def test_broken_ranks_are_refused_and_never_filled_in(tmp_path, frame):
    path = tmp_path / "ranks.parquet"
    pd.DataFrame(frame).to_parquet(path)
    with pytest.raises(EopError, match=r"ranks\.parquet") as caught:
        read_ranks(path)
    assert caught.value.code == "EOP651"


def test_a_file_that_is_no_parquet_is_named(tmp_path):
    path = tmp_path / "ranks.parquet"
    with pytest.raises(EopError, match="cannot be read"):
        read_ranks(path)
    path.write_text("nonsense")
    with pytest.raises(EopError, match="cannot be read"):
        read_ranks(path)
