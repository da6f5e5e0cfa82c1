"""Who ranks the directions for the next turn is of another vendor than who has named them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eop.protocol.checks.phases import product_place
from eop.protocol.products import vendor_of
from eop.protocol.signatures import DIRECTIONS, RANKING

if TYPE_CHECKING:
    from eop.protocol.diagnostics import Report
    from eop.protocol.draft import Draft, Placed
    from eop.protocol.model import Phase


def check_rankings(draft: Draft, report: Report) -> None:
    """Check every role of a phase that leaves a ranking against those who leave directions."""
    named = {
        vendor_of(product): role
        for phase in _leaving(draft, DIRECTIONS)
        for role, product in phase.value.cast
    }
    for phase in _leaving(draft, RANKING):
        for role, product in phase.value.cast:
            vendor = vendor_of(product)
            if vendor in named:
                message = f"'{role}' ranks what '{named[vendor]}' has named, and both are {vendor}"
                hint = f"give '{role}' a product of another vendor"
                report.error("EOP214", message, product_place(phase, role, product), hint)


def _leaving(draft: Draft, schema: str) -> list[Placed[Phase]]:
    return [
        phase
        for phase in draft.phases
        if any(output.schema == schema for output in phase.value.outputs)
    ]
