"""What people do to random histories: pause, resume, cancel; and what holds meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant

from eop.protocol.model import Phase, Plan
from eop.runtime.due import due
from eop.runtime.frontier import frontier

if TYPE_CHECKING:
    from eop.runtime.state import State

HALTING = ["pause", "resume", "resume", "cancel"]


class Halting(RuleBasedStateMachine):
    """The moves in ``HALTING``, for a machine with a plan, a state and a way to try an event."""

    plan: Plan
    state: State

    def refuses(self, kind: str, **data: Any) -> bool:
        raise NotImplementedError

    def pause(self, data: st.DataObject) -> None:
        held = bool(self.state.halt or self.state.ended)
        assert self.refuses("run_paused", by="a", reason="") == held

    def resume(self, data: st.DataObject) -> None:
        halt = self.state.halt
        paused = halt is not None and halt.status == "paused" and not self.state.ended
        assert self.refuses("run_resumed", by="a", reason="") == (not paused)

    def cancel(self, data: st.DataObject) -> None:
        if data.draw(st.integers(0, 3)):  # rarely: a history ends with it
            return
        over = self.state.ended or (self.state.halt and self.state.halt.status == "cancelled")
        assert self.refuses("run_cancelled", by="a", reason="") == bool(over)

    @invariant()
    def a_halted_run_reaches_nothing_new(self) -> None:
        if self.state.halt:
            nodes = frontier(self.plan, self.state).instances
            phases = [node for node in nodes if isinstance(self.plan.steps[node.step], Phase)]
            assert all(self.state.nodes[node.key].final for node in phases)
            if self.state.halt.status == "cancelled":
                assert self.state.ended == "cancelled" or due(self.plan, self.state) == (
                    "run_ended",
                    {"reason": "cancelled"},
                )
