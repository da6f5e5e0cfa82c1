from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eop.stats import benjamini_hochberg, holm

P_VALUES = st.lists(st.floats(0.0, 1.0), max_size=8)


def test_known_cases_by_hand():
    p = [0.01, 0.04, 0.03, 0.005]
    assert holm(p) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert benjamini_hochberg(p) == pytest.approx([0.02, 0.04, 0.04, 0.02])
    assert (holm([]), benjamini_hochberg([])) == ([], [])
    assert (holm([0.3]), benjamini_hochberg([0.3])) == ([0.3], [0.3])


@given(P_VALUES)
def test_adjusting_never_makes_a_value_smaller_and_keeps_the_order(p):
    for adjust in (holm, benjamini_hochberg):
        adjusted = adjust(p)
        assert all(old <= new <= 1 for old, new in zip(p, adjusted, strict=True))
        order = np.argsort(p, kind="stable")
        assert list(np.diff([adjusted[i] for i in order]) >= 0) == [True] * max(0, len(p) - 1)
    pairs = zip(benjamini_hochberg(p), holm(p), strict=True)
    assert all(q <= adjusted + 1e-12 for q, adjusted in pairs)


def test_holm_holds_the_chance_of_any_false_one_and_the_plain_values_do_not():
    generator = np.random.default_rng(3)
    draws = generator.random((2000, 5))
    any_false = np.mean([min(holm(list(p))) <= 0.05 for p in draws])
    assert any_false <= 0.065
    assert np.mean(draws.min(axis=1) <= 0.05) > 0.2


def test_of_what_benjamini_and_hochberg_take_few_are_false():
    generator = np.random.default_rng(4)
    shares = []
    for _ in range(1000):
        real = generator.random(10) * 0.001
        none = generator.random(10)
        taken = np.array(benjamini_hochberg([*real, *none])) <= 0.1
        shares.append(taken[10:].sum() / max(1, taken.sum()))
        assert taken[:10].all()
    assert np.mean(shares) <= 0.06, "half of them are null: half of 0.1"
