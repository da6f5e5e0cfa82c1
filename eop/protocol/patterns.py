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


_CHANGE = ("implementer", "reviewer", "fixer")
_PLANNED = ("planner", "plan_reviewer", *_CHANGE)


@dataclass(frozen=True)
class Pattern:
    """What a pattern asks of the nodes of its phase.

    ``roles`` must each have a product; ``None``: any roles, in the order written. ``optional``
    roles may be left out; ``stand_ins`` says whose product plays one then. ``apart`` are the roles
    that judge the work of others, who must be of another vendor where the protocol asks for that:
    a pattern has a review when it is not empty. ``makes`` are outputs that the runtime makes,
    ``prompts`` what its nodes are told by; in a chain, each role by a prompt of its own.
    """

    roles: tuple[str, ...] | None = None
    optional: tuple[str, ...] = ()
    stand_ins: Mapping[str, str] = field(default_factory=dict)
    apart: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    makes: tuple[str, ...] = ()
    prompts: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All roles that may be written; none where any may."""
        return (*(self.roles or ()), *self.optional)


PATTERNS: Mapping[str, Pattern] = MappingProxyType(
    {
        "linear": Pattern(),
        "dual": Pattern(
            _CHANGE,
            apart={"reviewer": ("implementer", "fixer")},
            makes=("review",),
            prompts=_CHANGE,
        ),
        "bta": Pattern(
            ("breakdown", WORKER),
            optional=(AGGREGATE,),
            makes=(WORKERS_OUTPUT,),
            prompts=("breakdown", WORKER, AGGREGATE),
        ),
        "plan_then_implement": Pattern(
            _PLANNED,
            apart={"plan_reviewer": ("planner",), "reviewer": ("implementer", "fixer")},
            makes=("plan", "plan_review", "review"),
            prompts=(*_PLANNED, "plan_fixer"),
        ),
        "plan_merge": Pattern(
            _PLANNED,
            optional=("co_planner", "merger"),
            stand_ins={"co_planner": "plan_reviewer", "merger": "planner"},
            apart={
                "co_planner": ("planner",),
                "plan_reviewer": ("merger",),
                "reviewer": ("implementer", "fixer"),
            },
            makes=("plan", "plan_review", "review"),
            prompts=(*_PLANNED, "cross_reader", "merger", "plan_fixer"),
        ),
    }
)
REVIEWED = tuple(name for name, pattern in PATTERNS.items() if pattern.apart)
