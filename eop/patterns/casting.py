"""Whether all who are to play a part in a phase can: asked before the first of them spends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eop.core.errors import EopError
from eop.protocol.model import OTHER
from eop.protocol.patterns import PATTERNS

if TYPE_CHECKING:
    from eop.patterns.task import Task


def absent_product(task: Task) -> str | None:
    """Why a role of the phase cannot be played as the protocol says; ``None`` when all can.

    Nobody stands in for a product that is not there: the phase is blocked until it is, or until
    the protocol names another.
    """
    phase = task.phase
    for role, name in phase.cast:
        try:
            task.products[name].probe()
        except EopError as error:
            return f"{role}: {error.message}; no other product may take its place"
    if phase.review is None or phase.review.vendor != OTHER:
        return None
    vendors = {role: task.products[name].vendor for role, name in phase.nodes.items()}
    for judge, authors in PATTERNS[phase.pattern or ""].apart.items():
        own = [role for role in authors if vendors[role] == vendors[judge]]
        if own:
            return f"{judge} is of the vendor of {own[0]}, {vendors[judge]}: another is required"
    return None
