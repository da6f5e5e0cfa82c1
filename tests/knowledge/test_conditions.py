from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from eop.knowledge.conditions import flat, meet, within

NUMBERS = st.integers(0, 5)
RANGES = st.tuples(NUMBERS, NUMBERS).map(lambda ends: {"min": min(ends), "max": max(ends)})
CHOICES = st.lists(NUMBERS, min_size=1, max_size=3).map(lambda values: {"any": values})
VALUES = st.one_of(
    NUMBERS, RANGES, CHOICES, NUMBERS.map(lambda n: {"min": n}), NUMBERS.map(lambda n: {"max": n})
)
STATED = st.dictionaries(st.sampled_from("abc"), VALUES)
SEEN = st.fixed_dictionaries(dict.fromkeys("abc", NUMBERS))
WORLD = [{"a": a, "b": b, "c": c} for a in range(6) for b in range(6) for c in range(6)]


def holds(value, number):
    if isinstance(value, dict) and "any" in value:
        return number in value["any"]
    if isinstance(value, dict):
        return value.get("min", number) <= number <= value.get("max", number)
    return value == number


def possible(world, stated):
    return all(holds(value, world[key]) for key, value in stated.items())


@given(STATED, STATED)
def test_two_conditions_meet_when_there_is_a_world_in_which_both_hold(one, other):
    expected = any(possible(world, one) and possible(world, other) for world in WORLD)
    assert meet(one, other) == meet(other, one) == expected


@given(SEEN, STATED)
def test_what_was_seen_lies_within_what_holds_for_it(seen, stated):
    assert within(seen, stated) == possible(seen, stated)


@given(STATED)
def test_what_was_not_seen_is_within_no_statement_about_it(stated):
    assert within({}, stated) == (not stated)


def test_words_lists_and_switches_are_literal():
    assert meet({"a": "x"}, {"a": "x"}) and not meet({"a": "x"}, {"a": {"min": 1}})
    assert meet({"a": [1, 2]}, {"a": [1, 2]}) and not meet({"a": [1, 2]}, {"a": 1})
    assert not meet({"a": True}, {"a": 1}) and not meet({"a": {}}, {"a": 1})
    assert meet({"a": {}}, {"a": {}}) and meet({"a": 1}, {"b": 2})


def test_settings_are_laid_flat():
    assert dict(flat({"model": {"dim": 8}, "interventions": {"film": {}}}, "base")) == {
        "base.model.dim": 8,
        "base.interventions.film": {},
    }
