"""What happens in a run, a line for each event, as it happens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eop.core.errors import EopError
from eop.report.spending import SPENT, spending
from eop.runtime.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from eop.protocol.model import Plan
    from eop.report.spending import Spend
    from eop.runtime.events import Event


class Follower:
    """Reads on in a trace: each call of ``news`` gives what was appended since the one before.

    What the trace holds when the follower is made is no news.
    """

    def __init__(self, trace_dir: Path, plan: Plan) -> None:
        self._trace = Trace(trace_dir, plan)
        self._seen = 0
        self._at_work = False
        self.news()

    def news(self) -> list[str]:
        """A line for each new event, and where the budget stands."""
        try:
            events = self._trace.events()
        except EopError:
            # It is to be read elsewhere, with all that there is to say about it.
            return []
        new, self._seen = events[self._seen :], len(events)
        if not new:
            return []
        self._at_work = bool(self._trace.state().active)
        return [*(line(event) for event in new), self._spend()]

    @property
    def at_work(self) -> bool:
        """Whether a node was at work when there were last any news."""
        return self._at_work

    def _spend(self) -> str:
        state, budget = self._trace.state(), self._trace.plan.budget
        at_work = f"; at work: {', '.join(state.active)}" if state.active else ""
        found = spending(self._trace.plan, state, self._trace.events())
        more = "".join(f", {_reported(one)}" for one in found if one.unit in ("tokens", "usd"))
        return (
            f"  spent {state.spent.actions}{_of(budget.actions)} actions, "
            f"{duration(state.spent.wall_s)}{_of(budget.wall_s, duration)} of work{more}{at_work}"
        )


def _reported(spend: Spend) -> str:
    """Tokens or dollars, as far as products have reported them."""
    name = SPENT[spend.unit]
    if spend.spent is None:
        return f"{name} unknown"
    least = "at least " if spend.unknown else ""
    return f"{least}{spend.spent:.10g}{_of(spend.limit, '{:.10g}'.format)} {name}"


def _of(limit: float | None, show: Callable[[float], str] = str) -> str:
    return "" if limit is None else f" of {show(limit)}"


def duration(seconds: float) -> str:
    """``4.2 s``, ``3 m 20 s`` or ``2 h 05 m``."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes} m {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} m"


def line(event: Event) -> str:
    """An event in words: the clock time (UTC) of its record, what it is about, what happened."""
    say = _WORDS[event.type]
    about = str(event.data.get("node") or event.data.get("gate") or "the run")
    return f"{event.time[11:19]}  {about:<24} {' '.join(say(event.data).split())}"


def _left(data: Mapping[str, Any]) -> str:
    usage = data["usage"]
    actions = "actions unknown"
    if usage["actions"] is not None:
        actions = f"{usage['actions']} action{'' if usage['actions'] == 1 else 's'}"
    reason = f": {data['reason']}" if data["reason"] else ""
    return f"{data['outcome']} after {duration(usage['wall_s'])}, {actions}{reason}"


def _by(what: str) -> Callable[[Mapping[str, Any]], str]:
    def say(data: Mapping[str, Any]) -> str:
        return f"{what} by {data['by']}" + (f": {data['reason']}" if data["reason"] else "")

    return say


_WORDS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "run_started": lambda data: "started",
    "node_entered": lambda data: f"at work, attempt {data['attempt']}",
    "node_left": _left,
    "node_abandoned": lambda data: f"abandoned: {data['reason']}",
    "node_skipped": lambda data: f"skipped: {data['reason']}",
    "sent_back": lambda data: "sends the run back",
    "branches_opened": lambda data: f"opens {len(data['branches'])} branches of {data['item']}",
    "gate_requested": lambda data: "asks for an answer",
    "gate_approved": _by("approved"),
    "gate_rejected": _by("rejected"),
    "gate_skipped": lambda data: f"is not asked: {data['reason']}",
    "loop_continued": lambda data: f"begins iteration {data['iteration']}",
    "plan_changed": _by("was brought under another plan"),
    "run_paused": _by("paused"),
    "run_resumed": _by("resumed"),
    "run_cancelled": _by("cancelled"),
    "run_ended": lambda data: f"ended: {data['reason']}",
}
