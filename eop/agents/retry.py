"""What may follow an attempt that did not succeed, by its status."""

from __future__ import annotations

import random
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from eop.agents.contract import Status

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Retry:
    """``most`` further attempts, ``backoff`` before each; ``pause`` asks for a person first.

    A retry has a fresh HOME and a fresh workspace of the same tree, and what is left of the
    budget. ``pause``: every other node would fail the same way, so it is better not to start them.
    """

    most: int = 0
    backoff: bool = False
    pause: bool = False


_NEVER = Retry()
_PAUSE = Retry(pause=True)
RETRIES: Mapping[Status, Retry] = MappingProxyType(
    {
        Status.SETUP_ERROR: _PAUSE,
        Status.CANCELLED: _NEVER,
        Status.TIMEOUT: _NEVER,
        Status.POLICY_VIOLATION: _NEVER,
        Status.BUDGET_EXHAUSTED: _NEVER,
        Status.TRANSIENT_ERROR: Retry(most=2, backoff=True),
        Status.AUTH_ERROR: _PAUSE,
        Status.QUOTA_EXHAUSTED: _PAUSE,
        Status.CONFIG_ERROR: _PAUSE,
        Status.REFUSED: _NEVER,
        Status.CONTEXT_OVERFLOW: _NEVER,
        Status.STUCK: _NEVER,
        Status.INVALID_OUTPUT: Retry(most=1),
        Status.BLOCKED: _NEVER,
        Status.NO_CHANGE: _NEVER,
        Status.OK: _NEVER,
    }
)
_FIRST_WAIT_S = 2.0


def wait_s(status: Status, retry: int) -> float:
    """Seconds before retry number ``retry`` (from 1): 2, then 8, each with up to half on top."""
    if not RETRIES[status].backoff:
        return 0.0
    return _FIRST_WAIT_S * 4.0 ** (retry - 1) * random.uniform(1.0, 1.5)
