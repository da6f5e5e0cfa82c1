"""How often the rule is wrong, and how often it finds what is there, over simulated turns."""

from __future__ import annotations

import pytest
from simulated_turns import WORLDS, World, play

_WITHOUT_EFFECT = [0.0] * 1000


@pytest.mark.parametrize(
    ("world", "naive_fails"),
    [
        (WORLDS["seeds as much as users, 2 seeds, 4 candidates"], True),
        (WORLDS["seeds as much as users, 2 seeds, 1 candidate"], False),
        (WORLDS["the same, one of 4 three times as shaky"], True),
    ],
)
def test_without_an_effect_at_most_one_turn_in_twenty_promotes(world, naive_fails):
    tally = play(world, _WITHOUT_EFFECT)
    assert len(tally.promoted) == 1000
    assert 1 - tally.share("champion") <= 0.05
    # The worlds are hard enough to tell: each candidate for itself, by two errors, is no rule.
    assert (tally.naive / 1000 > 0.05) == naive_fails


@pytest.mark.parametrize("world", [World(shared=0.1, seeds=3)])
def test_a_gain_of_the_detectable_size_is_found_with_the_stated_power(world):
    # A planted gain moves users apart and so widens the interval: what is detectable settles.
    planted = world.effects_of(play(world, [0.0] * 400).detectable)
    settled = world.effects_of(play(world, planted).detectable)
    tally = play(world, settled)
    assert 0.75 <= tally.share("c0") <= 0.87
    assert tally.share("champion") + tally.share("c0") > 0.97, "no other is promoted in its place"
