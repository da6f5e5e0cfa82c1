"""Caps of one attempt: a call is admitted if all of it fits under them at its worst. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING

from eop.agents.failures import BUDGET_REFUSAL

if TYPE_CHECKING:
    from eop.agents.contract import Limits
    from eop.agents.gateway.asked import Asked
    from eop.agents.gateway.prices import Price, Prices
    from eop.agents.gateway.told import Told

# No API takes a smaller bound, and no answer fits into it.
_LEAST_OUTPUT = 16
# Where neither the request nor the table says how long an answer may get.
_LONGEST_OUTPUT = 128_000


class Why(StrEnum):
    """Why a call was refused."""

    BUDGET = "budget"  # it could pass a cap
    UNPRICED = "unpriced"  # there is a cap in USD, and the model has no price
    UNBOUNDED = "unbounded"  # there is a cap, and nothing bounds what the call may read
    FORBIDDEN = "forbidden"  # what it asks cannot be metered, or reaches further than an agent may


@dataclass(frozen=True)
class Caps:
    """The most that an attempt may use; ``None`` is no cap."""

    calls: int | None = None
    input: int | None = None
    output: int | None = None
    tokens: int | None = None
    usd: Decimal | None = None

    @classmethod
    def of(cls, limits: Limits) -> Caps:
        """The limits of a request that a gateway can hold."""
        usd = None if limits.usd is None else Decimal(repr(limits.usd))
        return cls(
            limits.model_calls, limits.input_tokens, limits.output_tokens, limits.tokens, usd
        )


@dataclass(frozen=True)
class Amount:
    """What calls use, or may use at most. ``usd`` is ``None`` when a price is not known."""

    calls: int = 0
    input: int = 0
    output: int = 0
    usd: Decimal | None = Decimal()

    def __add__(self, other: Amount) -> Amount:
        usd = None if self.usd is None or other.usd is None else self.usd + other.usd
        return Amount(
            self.calls + other.calls, self.input + other.input, self.output + other.output, usd
        )


@dataclass(frozen=True)
class Admitted:
    """A call that may be made: what is held back for it, its price, the bound on each answer.

    ``most_output`` is ``None`` where the request has a bound of its own or none is needed.
    """

    reserved: Amount
    price: Price | None
    most_output: int | None = None


@dataclass(frozen=True)
class Refused:
    """A call that is not made, and why, for the product and for people."""

    why: Why
    detail: str


@dataclass
class Meter:
    """Keeps what is spent and what is held back for calls under way; one event loop's own."""

    caps: Caps
    prices: Prices
    spent: Amount = field(default_factory=Amount)
    _open: dict[int, Amount] = field(default_factory=dict)

    @property
    def taken(self) -> Amount:
        """What is spent and what calls under way may still spend."""
        return sum(self._open.values(), self.spent)

    def admit(self, call: int, asked: Asked) -> Admitted | Refused:
        """Hold back what ``call`` may come to at worst, or refuse it."""
        decided = admit(self.caps, self.taken, asked, self.prices)
        if isinstance(decided, Admitted):
            self._open[call] = decided.reserved
        return decided

    def settle(self, call: int, charged: Amount) -> None:
        """Charge a call that has ended; what was held back for it is free again."""
        del self._open[call]
        self.spent += charged


def admit(caps: Caps, taken: Amount, asked: Asked, prices: Prices) -> Admitted | Refused:
    """Whether a call fits under ``caps`` at its worst, on top of what is ``taken``."""
    if asked.refusal is not None:
        return Refused(Why.FORBIDDEN, asked.refusal)
    price = prices.of(asked.model) if asked.list_price else None
    if caps.calls is not None and taken.calls >= caps.calls:
        return _over(f"{caps.calls} model calls")
    if caps.usd is not None and (price is None or taken.usd is None):
        return Refused(Why.UNPRICED, f"model '{asked.model}' has no price, and USD are limited")
    if (caps.input, caps.tokens, caps.usd) == (None, None, None):
        most_input = asked.most_input or 0
    elif asked.most_input is None:
        return Refused(Why.UNBOUNDED, "it refers to input that is not in the request")
    else:
        most_input = asked.most_input
    if caps.input is not None and taken.input + most_input > caps.input:
        return _over(f"{caps.input} tokens of input, {taken.input} are used")
    return _with_output(caps, taken, asked, price, most_input)


def _with_output(
    caps: Caps, taken: Amount, asked: Asked, price: Price | None, most_input: int
) -> Admitted | Refused:
    longest = price.most_output if price and price.most_output else _LONGEST_OUTPUT
    room = _room(caps, taken, price, most_input)
    wanted, bound = asked.most_output, None
    if wanted is None:
        wanted = longest * asked.answers
        if room is not None:
            each, limit = min(longest, room[0] // asked.answers), room[1]
            if each < _LEAST_OUTPUT:
                return _over(limit)
            wanted, bound = each * asked.answers, each
    elif room is not None and wanted > room[0]:
        return _over(room[1])
    usd = price.most(most_input, wanted) if price else None
    return Admitted(Amount(1, most_input, wanted, usd), price, bound)


def _room(
    caps: Caps, taken: Amount, price: Price | None, most_input: int
) -> tuple[int, str] | None:
    """How much output still fits, and the cap that says so; ``None`` when none does."""
    rooms: list[tuple[int, str]] = []
    if caps.output is not None:
        rooms.append((caps.output - taken.output, f"{caps.output} tokens of output, "
                      f"{taken.output} are used"))  # fmt: skip
    if caps.tokens is not None:
        used = taken.input + taken.output
        rooms.append((caps.tokens - used - most_input, f"{caps.tokens} tokens, {used} are used"))
    if caps.usd is not None and price is not None and taken.usd is not None:
        left = caps.usd - taken.usd
        fits = price.output_for(left, most_input) if price.most(most_input, 0) <= left else -1
        rooms.append((fits, f"{caps.usd} USD, {taken.usd:f} are used"))
    return min(rooms) if rooms else None


def _over(limit: str) -> Refused:
    return Refused(Why.BUDGET, f"{BUDGET_REFUSAL}: the call could pass the limit of {limit}")


def charge(admitted: Admitted, told: Told | None) -> Amount:
    """What a call is charged: what was told, and what was held back where it was not.

    ``told`` is ``None`` for a call that came to nothing and costs nothing, as an error does.
    """
    if told is None:
        return Amount(1)
    held = admitted.reserved
    if told.complete:
        usd = admitted.price.cost(told) if admitted.price else None
        return Amount(1, told.input or 0, told.output or 0, usd)
    # The input is told at the beginning of an answer, its length only at the end.
    known = held.input if told.input is None else told.input
    output = max(held.output, told.output or 0)
    usd = admitted.price.most(known, output) if admitted.price else None
    return Amount(1, known, output, usd)
