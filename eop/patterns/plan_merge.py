"""The pattern ``plan_merge``: two products plan, read each other, and one plan is made of both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eop.patterns.nodes import Work
from eop.patterns.outcomes import StoppedError
from eop.patterns.plan import ASKED, PLAN
from eop.patterns.plan_then_implement import PlanThenImplement

if TYPE_CHECKING:
    from pathlib import Path

_LANES = ("planner", "co_planner")
# Shares of the budget that the drafts leave to what follows: as much as both may spend.
_KEPT = 2


class PlanMerge(PlanThenImplement):
    """Drafts in two lanes at once, each revised in sight of the other; then as with one plan."""

    author = "merger"

    def drafts(self) -> dict[str, Path]:
        """The two revised drafts, by lane. Raises ``StoppedError`` when a lane cannot go on."""
        first = self._lanes({}, 1, "planner")
        return self._lanes(first, 2, "cross_reader")

    def _lanes(self, drafts: dict[str, Path], turn: int, prompt: str) -> dict[str, Path]:
        nodes = self.nodes
        given = {**nodes.given(), **drafts}
        works = [
            Work(lane, nodes.base, given, [ASKED], turn=turn, prompt=prompt) for lane in _LANES
        ]
        ended = nodes.together(works, at_once=len(works), kept=_KEPT)
        done = []
        for one in ended:
            if isinstance(one, StoppedError):
                raise one
            done.append(one)
        return {f"draft_{lane}": one.outputs[PLAN] for lane, one in zip(_LANES, done, strict=True)}
