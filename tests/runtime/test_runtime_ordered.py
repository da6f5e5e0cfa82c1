"""An ordered map: a dict's order and content, and earlier ones stay as they were."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from eop.runtime.ordered import Ordered

SETTINGS = st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers()))


@given(SETTINGS)
def test_it_is_a_dict_whose_past_is_kept(settings: list[tuple[str, int]]) -> None:
    plain: dict[str, int] = {}
    versions = [(Ordered[str, int](), dict(plain))]
    for key, value in settings:
        plain[key] = value
        versions.append((versions[-1][0].set(key, value), dict(plain)))
    for ordered, expected in versions:
        assert list(ordered.items()) == list(expected.items())
        assert ordered == expected and len(ordered) == len(expected)
        for key in "abcdefgh":
            assert (key in ordered) == (key in expected)
            assert ordered.get(key) == expected.get(key)
            assert ordered.get(key, 7) == expected.get(key, 7)
