"""Many comparisons at once: p-values adjusted for how many there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values, in the order given.

    Taking those up to a level holds the chance of any false one at that level.

    Holm's step-down procedure (1979); it holds however the comparisons depend on each other.
    """
    count = len(p_values)
    adjusted, largest = [1.0] * count, 0.0
    for place, index in enumerate(_ascending(p_values)):
        largest = max(largest, min(1.0, (count - place) * p_values[index]))
        adjusted[index] = largest
    return adjusted


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """q-values, in the order given: of those at most q, a share of q is expected to be false.

    Benjamini and Hochberg's step-up procedure (1995), for comparisons that are independent or
    rise and fall together, as those with one champion do.
    """
    count = len(p_values)
    adjusted, smallest = [1.0] * count, 1.0
    for place, index in reversed(list(enumerate(_ascending(p_values), start=1))):
        smallest = min(smallest, p_values[index] * (count / place))
        adjusted[index] = smallest
    return adjusted


def _ascending(values: Sequence[float]) -> list[int]:
    return sorted(range(len(values)), key=lambda index: values[index])
