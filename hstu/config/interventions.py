"""The ``interventions`` section: named changes of the baseline, each with its own block.

A block that is left out leaves the baseline as it is, to the bit.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Interventions:
    """The interventions of an experiment; ``None`` is one that is off."""
