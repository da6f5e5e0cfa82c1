"""The patterns that a phase may follow: their roles, and who stands in for a role left out."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

WORKER = "worker"
AGGREGATE = "aggregate"
# The output in which a bta tells how each worker ended; the runtime makes it.
WORKERS_OUTPUT = "workers"


@dataclass(frozen=True)
class Pattern:
    """What a pattern asks of the nodes of its phase.

    ``roles`` must each have a product; ``None``: any roles, in the order written. ``optional``
    roles may be left out. ``reviews`` says whose work a reviewing role judges: a pattern has a
    review when it is not empty.
    """

    roles: tuple[str, ...] | None = None
    optional: tuple[str, ...] = ()
    reviews: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """All roles that may be written; none where any may."""
        return (*(self.roles or ()), *self.optional)


PATTERNS: Mapping[str, Pattern] = MappingProxyType(
    {
        "linear": Pattern(),
        "dual": Pattern(
            ("implementer", "reviewer", "fixer"),
            reviews={"reviewer": ("implementer", "fixer")},
        ),
        "bta": Pattern(("breakdown", WORKER), optional=(AGGREGATE,)),
    }
)
REVIEWED = tuple(name for name, pattern in PATTERNS.items() if pattern.reviews)
