"""The status of an invocation from the facts about it: pure, first match wins."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from eop.agents import events as told
from eop.agents.contract import Counters, Limits, Mode, Reason, Source, Status, Stop, Usage

if TYPE_CHECKING:
    from collections.abc import Callable

    from eop.agents.events import Event

_STOPPED_FOR_TIME = {Stop.TIMEOUT: "wall clock", Stop.IDLE: "no progress"}
_STOPPED_FOR_BUDGET = {
    Stop.BUDGET: "action budget",
    Stop.OUTPUT_CAP: "output cap",
    Stop.MEMORY: "memory cap",
    Stop.PROCESSES: "cap on processes",
    Stop.DISK: "cap on its folder",
}
# The product's own word on what went wrong, where it counts as an error class of its own.
_ERROR_CLASSES = (
    Status.TRANSIENT_ERROR,
    Status.AUTH_ERROR,
    Status.QUOTA_EXHAUSTED,
    Status.CONFIG_ERROR,
    Status.REFUSED,
    Status.CONTEXT_OVERFLOW,
    Status.STUCK,
)


@dataclass(frozen=True)
class Facts:
    """All that a status is decided from.

    ``stop`` says why the runtime stopped the process, ``None`` for an end of its own; ``rc`` is
    negative for a signal; ``lingered`` is true for a product that had reported its end and would
    not go. ``missing`` names outputs that are absent or do not conform, with the reason;
    ``changed`` says whether the workspace differs from its base. ``complaint`` is the end of the
    standard error, for people. ``counted`` is what the gateway counted, which goes before what the
    product tells; ``refused`` is the status and the reason of the last call that it refused.
    """

    mode: Mode
    setup_error: str | None = None
    stop: Stop | None = None
    rc: int | None = None
    lingered: bool = False
    violations: tuple[str, ...] = ()
    events: tuple[Event, ...] = ()
    limits: Limits = Limits()  # noqa: RUF009 - frozen, shared safely
    missing: tuple[str, ...] = ()
    changed: bool = False
    complaint: str = ""
    counted: tuple[Usage, int] | None = None
    refused: tuple[Status, Reason] | None = None

    @property
    def usage(self) -> Usage:
        """What was spent, by the gateway's count, else by the product's word."""
        return self.counted[0] if self.counted else told.usage(self.events)

    @property
    def counters(self) -> Counters:
        """Counts of the run, model calls by the gateway's."""
        counters = told.counters(self.events)
        return replace(counters, model_calls=self.counted[1]) if self.counted else counters


def decide(facts: Facts) -> tuple[Status, Reason]:
    """The first status that applies, and why."""
    for status, judge in JUDGES:
        reason = judge(facts)
        if reason is not None:
            return status, reason
    return Status.OK, Reason("ok")


def _setup_error(facts: Facts) -> Reason | None:
    if facts.setup_error is not None:
        return Reason("setup", facts.setup_error)
    said = _failure(facts, Status.SETUP_ERROR)
    if said is not None:
        return said
    # Exit statuses over 128 stand for signals: that program did start.
    began = told.alive(facts.events) or told.final(facts.events) is not None
    if not began and facts.stop is None and 0 < (facts.rc or 0) < 128:
        detail = facts.complaint.strip() or "no word of it on either stream"
        return Reason("not_started", f"exit status {facts.rc} before any event: {detail}")
    return None


def _cancelled(facts: Facts) -> Reason | None:
    return Reason("cancelled", "stopped by the runtime") if facts.stop is Stop.CANCELLED else None


def _timeout(facts: Facts) -> Reason | None:
    if facts.stop in _STOPPED_FOR_TIME:
        return Reason(facts.stop.value, f"stopped: {_STOPPED_FOR_TIME[facts.stop]}")
    return None


def _policy_violation(facts: Facts) -> Reason | None:
    return Reason("policy", "; ".join(facts.violations)) if facts.violations else None


def _budget_exhausted(facts: Facts) -> Reason | None:
    over = over_budget(facts.limits, facts.usage, facts.counters)
    if over:
        return Reason(over, f"more {over} than the budget allows")
    if facts.stop in _STOPPED_FOR_BUDGET:
        return Reason(facts.stop.value, f"stopped: {_STOPPED_FOR_BUDGET[facts.stop]}")
    return _failure(facts, Status.BUDGET_EXHAUSTED)


def over_budget(limits: Limits, usage: Usage, counted: Counters) -> str | None:
    """The first unit of the budget that a run is known to have gone over."""
    spent = {
        "actions": counted.actions,
        "model_calls": counted.model_calls,
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "tokens": usage.tokens,
        "usd": usage.usd,
    }
    for unit, amount in spent.items():
        cap = getattr(limits, unit)
        if cap is not None and amount is not None and amount > cap:
            return unit
    return None


def _product_error(status: Status) -> Callable[[Facts], Reason | None]:
    return lambda facts: _failure(facts, status)


def _failure(facts: Facts, status: Status) -> Reason | None:
    """What the product said, if it said that this is what went wrong.

    The gateway knows better why it refused a call than a product whose work came to nothing by it.
    """
    if facts.refused is not None and _invalid_output(facts) is not None:
        return facts.refused[1] if facts.refused[0] is status else None
    final = told.final(facts.events)
    if final is None or final.data.get("error") != status:
        return None
    said = final.data
    return Reason(
        str(said.get("code") or status),
        str(said.get("detail") or said.get("text") or ""),
        said.get("http_status"),
        str(said.get("source") or Source.PRODUCT),
    )


def _invalid_output(facts: Facts) -> Reason | None:
    final = told.final(facts.events)
    said = str(final.data.get("detail") or final.data.get("text") or "") if final else ""
    if final is not None and final.data.get("status") != "success":
        code = str(final.data.get("code") or "product")
        return Reason(code, said or "the product reported an error", source=Source.PRODUCT)
    if facts.rc != 0 and not facts.lingered:
        report = "whatever it reports" if final else "without a final report"
        return _bad_end(facts.rc, report)
    if final is None:
        return Reason("no_report", "the product left no final report")
    if facts.counted is not None and facts.counted[1] == 0:
        return Reason("no_calls", "success without one call of the model")
    if told.usage(facts.events).output == 0 and told.counters(facts.events).model_calls != 0:
        return Reason("no_tokens", f"success without one token of output: {said}")
    return Reason("outputs", "; ".join(facts.missing)) if facts.missing else None


def _bad_end(rc: int | None, report: str) -> Reason:
    if rc is not None and rc > 0:
        return Reason("exit", f"exit status {rc}, {report}")
    return Reason("signal", f"ended by signal {'unknown' if rc is None else -rc}, {report}")


def _blocked(facts: Facts) -> Reason | None:
    if facts.mode is Mode.WRITE and not facts.changed and told.counters(facts.events).denied:
        return Reason("denied", "nothing changed and the product refused its own tool calls")
    return None


def _no_change(facts: Facts) -> Reason | None:
    if facts.mode is Mode.WRITE and not facts.changed:
        return Reason("no_change", "the workspace is as it was")
    return None


JUDGES: tuple[tuple[Status, Callable[[Facts], Reason | None]], ...] = (
    (Status.SETUP_ERROR, _setup_error),
    (Status.CANCELLED, _cancelled),
    (Status.TIMEOUT, _timeout),
    (Status.POLICY_VIOLATION, _policy_violation),
    (Status.BUDGET_EXHAUSTED, _budget_exhausted),
    *((status, _product_error(status)) for status in _ERROR_CLASSES),
    (Status.INVALID_OUTPUT, _invalid_output),
    (Status.BLOCKED, _blocked),
    (Status.NO_CHANGE, _no_change),
)
