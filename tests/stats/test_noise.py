from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eop.core.errors import EopError
from eop.stats import Ranks, noise_band, paired_difference, pooled_half_width, seed_noise
from eop.stats.noise import pooled


def models(generator, count: int, *, shared: float, own: float, seeds: int = 3, users: int = 200):
    """Contributions of models whose seeds move all users by ``shared``, each user by ``own``."""
    level = generator.normal(0.5, 0.2, (count, 1, users))
    moves = generator.normal(0, shared, (count, seeds, 1))
    return list(level + moves + generator.normal(0, own, (count, seeds, users)))


def test_the_two_parts_of_the_noise_of_seeds_are_told_apart():
    generator = np.random.default_rng(5)
    found = pooled(models(generator, 400, shared=0.0, own=0.5))
    assert found is not None
    assert found.freedom == 800
    assert found.variance == pytest.approx(0.5**2 / 200, rel=0.15)
    assert found.sampling == pytest.approx(0.5**2 / 200, rel=0.02)
    assert found.shared < 0.15 * found.variance, "it is all in the spread over users already"
    found = pooled(models(generator, 400, shared=0.1, own=0.5))
    assert found is not None
    assert found.shared == pytest.approx(0.1**2, rel=0.15)


@given(st.integers(0, 2**31), st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_models_with_one_seed_say_nothing(seed, sizes):
    generator = np.random.default_rng(seed)
    sides = [generator.random((size, 9)) for size in sizes]
    found = pooled(sides)
    freedom = sum(size - 1 for size in sizes)
    if freedom == 0:
        assert found is None
        return
    assert found is not None
    assert found.freedom == freedom
    assert pooled([side for side in sides if len(side) > 1]) == found
    assert found.shared >= 0


def test_the_noise_of_others_widens_what_two_agreeing_seeds_would_say():
    users = np.arange(1000)
    steady = [Ranks.of(users, np.where(users % 2 == 0, 1, 50))] * 2
    base = [Ranks.of(users, np.where(users % 10 < 4, 1, 50))] * 2
    shaky = [Ranks.of(users, np.where(users % 10 < share, 1, 50)) for share in (3, 7)]
    alone = paired_difference(steady, base)
    assert (alone.error.of_seeds, alone.interval95[0] > 0) == (0.0, True)
    together = paired_difference(steady, base, seed_noise([steady, base, shaky]))
    assert together.mean == alone.mean
    assert together.interval95[0] < 0
    assert together.p > 0.05 > alone.p


def test_the_noise_of_others_never_hides_what_the_pair_itself_shows():
    users = np.arange(1000)
    shaky = [Ranks.of(users, np.where(users % 10 < share, 1, 50)) for share in (3, 7)]
    base = [Ranks.of(users, np.where(users % 10 < 4, 1, 50))] * 2
    quiet = [[base[0], base[0]]] * 8
    alone = paired_difference(shaky, base)
    together = paired_difference(shaky, base, seed_noise([shaky, base, *quiet]))
    assert together.error.of_seeds == alone.error.of_seeds


def test_a_band_of_null_controls():
    band = noise_band([0.1, 0.2, 0.3])
    assert band.half_width == pytest.approx(0.2)
    # Two means of three seeds lie closer together than two single seeds.
    assert band.of_difference(1, 1) == pytest.approx(0.2 * 2**0.5)
    assert band.of_difference(3, 3) == pytest.approx(0.2 * (2 / 3) ** 0.5)
    assert noise_band([0.2]).of_difference(1, 1) is None, "unknown, not zero"


def test_twins_that_come_out_apart_widen_the_band():
    assert noise_band([0.2, 0.2], [0.0]).of_difference(2, 2) == 0.0
    apart = noise_band([0.2, 0.2], [0.001, -0.004])
    assert (apart.twin, apart.of_difference(2, 2)) == (0.004, 0.004)
    with pytest.raises(EopError):
        noise_band([0.2, 0.2], [float("nan")])


def test_the_half_width_of_several_models_is_pooled():
    one, other = [0.1, 0.2, 0.3], [0.5, 0.5]
    assert pooled_half_width([one]) == pytest.approx(noise_band(one).half_width)
    assert pooled_half_width([[9.0]]) is None and pooled_half_width([]) is None, "unknown, not zero"
    assert pooled_half_width([one, [9.0]]) == pytest.approx(pooled_half_width([one]))
    # Two of three degrees of freedom have a variance of 0.01.
    assert pooled_half_width([one, other]) == pytest.approx(2 * (0.02 / 3) ** 0.5)
