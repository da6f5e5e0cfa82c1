from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eop.stats.student import quantile, two_sided, upper_tail

FREEDOM = st.floats(1.0, 5000.0)


@pytest.mark.parametrize(
    ("share", "freedom", "value"),
    # From printed tables of the distribution.
    [
        (0.975, 1, 12.7062),
        (0.975, 2, 4.3027),
        (0.975, 5, 2.5706),
        (0.995, 10, 3.1693),
        (0.95, 30, 1.6973),
        (0.975, 1e7, 1.9600),
        (0.025, 5, -2.5706),
        (0.5, 3, 0.0),
    ],
)
def test_quantiles_are_those_of_the_tables(share, freedom, value):
    assert quantile(share, freedom) == pytest.approx(value, abs=6e-5)


@given(st.floats(0.501, 0.9999), FREEDOM)
def test_a_quantile_has_its_tail(share, freedom):
    assert upper_tail(quantile(share, freedom), freedom) == pytest.approx(1 - share, rel=1e-9)


@given(st.floats(0.01, 30), FREEDOM)
def test_tails_are_the_integral_of_the_density(t, freedom):
    grid = np.linspace(0, t, 4001)
    half = (freedom + 1) / 2
    scale = math.exp(math.lgamma(half) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    inside = np.trapezoid(scale * np.exp(-half * np.log1p(grid**2 / freedom)), grid)
    assert two_sided(t, freedom) == pytest.approx(1 - 2 * inside, abs=2e-5)
    assert upper_tail(-t, freedom) == pytest.approx(1 - upper_tail(t, freedom))


def test_what_is_infinitely_far_has_no_tail():
    assert two_sided(math.inf, 3.0) == 0.0
    assert two_sided(0.0, 3.0) == 1.0
