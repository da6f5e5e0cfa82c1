"""What the nodes of a phase spend, and what each may still spend."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from eop.patterns.outcomes import StoppedError
from eop.protocol.model import UNITS, Budget
from eop.runtime.node import Outcome, Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from eop.agents.contract import Limits
    from eop.protocol.model import Phase


@dataclass(frozen=True)
class Share:
    """What one of several nodes that run at once may spend, set aside before any of them starts.

    ``bounds`` says whose budget each part is of.
    """

    name: str
    bounds: tuple[tuple[str, Budget], ...]


@dataclass(frozen=True)
class _Entry:
    role: str
    usage: Usage
    share: str | None


class Ledger:
    """The spending of one phase; safe to use from several threads.

    A role is bound by the phase's budget and by its own. A node with a share is bound by that
    alone, so nodes that run at once cannot overdraw together, whichever of them ends first.
    """

    def __init__(self, phase: Phase, limits: Limits) -> None:
        self._phase, self._limits = phase, limits
        self._entries: list[_Entry] = []
        self._lock = threading.Lock()

    def charge(self, role: str, usage: Usage, share: Share | None = None) -> None:
        """Count what a node has spent."""
        with self._lock:
            self._entries.append(_Entry(role, usage, share.name if share else None))

    @property
    def usage(self) -> Usage:
        """All that was spent so far."""
        return total(entry.usage for entry in self._listed())

    def attempts(self, role: str) -> int:
        """How often a node of this role may be tried."""
        return self._budget(role).attempts

    def limits(self, role: str, share: Share | None = None, tree: str | None = None) -> Limits:
        """What a node may still spend; unknown spending counts as all of a budget.

        Raises ``StoppedError``, with ``tree`` as its evidence, when a budget is spent.
        """
        limits = self._limits
        for whose, budget, spent in self._bounds(role, share):
            for unit in UNITS.values():
                left = _left(budget, spent, unit)
                if left is None:
                    continue
                if left <= 0:
                    reason = f"{whose} budget of {unit} is spent"
                    raise StoppedError(Outcome.BUDGET_EXHAUSTED, reason, tree)
                limits = _bounded(limits, unit, left)
        return limits

    def shares(self, roles: Mapping[str, str], *, kept: int) -> list[Share]:
        """A share for each name in ``roles``, which says what role the node has.

        Of what is left to the phase all get the same, and ``kept`` more stay with it; what is left
        to a role is for its own nodes.
        """
        found = []
        for name, role in roles.items():
            alike = list(roles.values()).count(role)
            parts = zip(self._bounds(role, None), (len(roles) + kept, alike), strict=True)
            bounds = tuple(
                (f"its share of {whose}", _part(budget, spent, count))
                for (whose, budget, spent), count in parts
            )
            found.append(Share(name, bounds))
        return found

    def _bounds(self, role: str, share: Share | None) -> list[tuple[str, Budget, Usage]]:
        entries = self._listed()
        if share is not None:
            own = total(entry.usage for entry in entries if entry.share == share.name)
            return [(whose, budget, own) for whose, budget in share.bounds]
        own = total(entry.usage for entry in entries if entry.role == role)
        everything = total(entry.usage for entry in entries)
        return [
            ("the phase's", self._phase.budget, everything),
            (f"{role}'s", self._budget(role), own),
        ]

    def _budget(self, role: str) -> Budget:
        """What a role may spend in the phase: its own budget, else the phase's."""
        return self._phase.node_budgets.get(role, self._phase.budget)

    def _listed(self) -> list[_Entry]:
        with self._lock:
            return list(self._entries)


def total(parts: Iterable[Usage]) -> Usage:
    """The sum, in whatever order; what one part does not know, the sum does not know either."""
    listed = list(parts)
    return Usage(
        _sum(part.actions for part in listed),
        math.fsum(part.wall_s for part in listed),
        _sum(part.tokens for part in listed),
        _sum(part.micro_usd for part in listed),
    )


def _sum(counts: Iterable[int | None]) -> int | None:
    known = 0
    for count in counts:
        if count is None:
            return None
        known += count
    return known


def _left(budget: Budget, spent: Usage, unit: str) -> float | None:
    """What is left of one unit; ``None`` without a limit."""
    limit, used = getattr(budget, unit), getattr(spent, unit)
    if limit is None:
        return None
    return 0 if used is None else limit - used


def _part(budget: Budget, spent: Usage, count: int) -> Budget:
    """One of ``count`` equal parts of what is left."""
    left = {unit: _left(budget, spent, unit) for unit in UNITS.values()}
    each: dict[str, Any] = {
        unit: None if amount is None else max(0, int(amount)) // count
        for unit, amount in left.items()
    }
    return Budget(**each)


def _bounded(limits: Limits, unit: str, left: float) -> Limits:
    """``limits`` with no more than ``left`` of a unit; products are told of dollars as such."""
    if unit == "micro_usd":
        unit, left = "usd", left / 1_000_000
    bound = getattr(limits, unit)
    changed: dict[str, Any] = {unit: left if bound is None else min(bound, left)}
    return replace(limits, **changed)
