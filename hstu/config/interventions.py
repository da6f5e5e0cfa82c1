"""The ``interventions`` section: named changes of the baseline, each with its own block.

A block that is left out leaves the baseline as it is, to the bit.
"""

from __future__ import annotations

from dataclasses import dataclass

from hstu.config.sections import require


@dataclass(frozen=True, kw_only=True)
class FilmConfig:
    """FiLM: tokens are scaled and shifted by what the user has seen so far."""

    half_life: float | None = None
    """Events after which one counts half in what was seen; left out, all count alike."""

    def __post_init__(self) -> None:
        positive = self.half_life is None or self.half_life > 0
        require(positive, "interventions.film.half_life", "must be above 0")


@dataclass(frozen=True, kw_only=True)
class Interventions:
    """The interventions of an experiment; ``None`` is one that is off.

    The network calls them in the order of these fields.
    """

    film: FilmConfig | None = None
