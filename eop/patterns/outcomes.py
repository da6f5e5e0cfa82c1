"""How a pattern ends early, and what the status of an agent means for its node."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from eop.agents.contract import Status
from eop.runtime.node import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

OUTCOMES: Mapping[Status, Outcome] = MappingProxyType(
    {
        Status.SETUP_ERROR: Outcome.BLOCKED,
        Status.CANCELLED: Outcome.FAILED,
        Status.TIMEOUT: Outcome.TIMED_OUT,
        Status.POLICY_VIOLATION: Outcome.TAMPERED,
        Status.BUDGET_EXHAUSTED: Outcome.BUDGET_EXHAUSTED,
        Status.TRANSIENT_ERROR: Outcome.FAILED,
        Status.AUTH_ERROR: Outcome.BLOCKED,
        Status.QUOTA_EXHAUSTED: Outcome.BLOCKED,
        Status.CONFIG_ERROR: Outcome.BLOCKED,
        Status.REFUSED: Outcome.FAILED,
        Status.CONTEXT_OVERFLOW: Outcome.FAILED,
        Status.STUCK: Outcome.FAILED,
        Status.INVALID_OUTPUT: Outcome.FAILED,
        Status.BLOCKED: Outcome.BLOCKED,
        Status.NO_CHANGE: Outcome.FAILED,
    }
)


class StoppedError(Exception):
    """The pattern cannot go on; ``tree`` is what its agents had made, kept as evidence."""

    def __init__(self, outcome: Outcome, reason: str, tree: str | None = None) -> None:
        super().__init__(reason)
        self.outcome = outcome
        self.reason = reason
        self.tree = tree
