"""The account of an attempt's model calls: two append-only files in its folder.

``reserved.jsonl`` has a line for each call before it is made, ``ledger.jsonl`` one for each that
has ended or was refused. A call without its second line was under way when the runtime died: it
is charged what was held back for it.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

from eop.agents.contract import Reason, Source, Status, Usage
from eop.agents.fields import count, mapping, text
from eop.agents.gateway.meter import Amount, Why
from eop.agents.stream import json_lines
from eop.core.files import writing

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

LEDGER, RESERVED = "ledger.jsonl", "reserved.jsonl"
_FEW_TOKENS = 1000
_COUNTS = ("input", "cache_read", "cache_write", "output", "reasoning")


class Ledger:
    """Writes the account in ``directory``; every line is on the disk when its method returns."""

    def __init__(self, directory: Path) -> None:
        self._paths = {name: directory / name for name in (LEDGER, RESERVED)}
        for path in self._paths.values():
            with writing(path):
                path.touch()

    def reserve(self, line: dict[str, Any]) -> None:
        """Note a call that is about to be made. ``EopError`` when that cannot be written."""
        self._append(RESERVED, line)

    def settle(self, line: dict[str, Any]) -> None:
        """Note how a call ended."""
        self._append(LEDGER, line)

    def _append(self, name: str, line: dict[str, Any]) -> None:
        path = self._paths[name]
        with writing(path), path.open("ab") as stream:
            stream.write(json.dumps(line).encode() + b"\n")
            stream.flush()
            os.fsync(stream.fileno())


@dataclass(frozen=True)
class Account:
    """What the calls of an attempt come to: those that ended, those that were cut off with it."""

    ended: tuple[dict[str, Any], ...]
    unfinished: tuple[dict[str, Any], ...]

    @cached_property
    def made(self) -> tuple[dict[str, Any], ...]:
        """The ended calls that went to the model; refused ones did not."""
        return tuple(line for line in self.ended if line.get("refused") is None)

    @property
    def refused(self) -> tuple[Status, Reason] | None:
        """Why the last call was refused, if it was: what an attempt that failed by it came to."""
        last = self.ended[-1] if self.ended else {}
        if not last.get("refused"):
            return None
        why = text(last, "refused")
        status = Status.BUDGET_EXHAUSTED if why == Why.BUDGET else Status.CONFIG_ERROR
        return status, Reason(why, text(last, "detail"), count(last, "status"), Source.GATEWAY)

    @property
    def usage(self) -> Usage:
        """Tokens and money as they were told; a lower bound when a call was cut off."""
        sums = {name: _sum(self.made, name) for name in _COUNTS}
        complete = not self.unfinished and all(line.get("complete") is True for line in self.made)
        usd = _usd(self.made)
        return Usage(
            **sums,
            usd=None if usd is None else float(usd),
            usd_basis="none" if usd is None else "gateway",
            source="gateway",
            complete=complete,
        )

    @property
    def charged(self) -> Amount:
        """What a budget is charged: the worst case, where the end of a call is not known."""
        parts = [_amount(mapping(line, "charged")) for line in self.made]
        parts += [_amount(mapping(line, "reserved")) for line in self.unfinished]
        return sum(parts, Amount())

    @property
    def charged_micro_usd(self) -> int | None:
        """Millionths of a dollar, rounded up."""
        usd = self.charged.usd
        return None if usd is None else int(usd.scaleb(6).to_integral_value(ROUND_CEILING))


def read_account(directory: Path) -> Account | None:
    """The account in an attempt's folder; ``None`` when no gateway has stood before it."""
    if not (directory / LEDGER).is_file():
        return None
    ended = tuple(line for line in json_lines(directory / LEDGER) if line)
    done = {line.get("call") for line in ended}
    begun = (line for line in json_lines(directory / RESERVED) if line)
    return Account(ended, tuple(line for line in begun if line.get("call") not in done))


def disagreement(account: Account, product: Usage) -> str | None:
    """A note when a product that tells all its tokens tells of many more or fewer than were seen.

    Its own count may leave out calls of subagents, or add what it guesses.
    """
    counted, said = account.usage, product.tokens
    if not (counted.complete and product.complete) or counted.tokens is None or said is None:
        return None
    tolerated = max(_FEW_TOKENS, counted.tokens // 10) if account.made else 0
    if abs(counted.tokens - said) <= tolerated:
        return None
    return f"the product tells of {said} tokens, the gateway counted {counted.tokens}"


def plain(amount: Amount) -> dict[str, Any]:
    """An amount as a line of the ledger has it; money is text, so that it stays exact."""
    usd = None if amount.usd is None else f"{amount.usd:f}"
    return {"input": amount.input, "output": amount.output, "usd": usd}


def _amount(data: dict[str, Any]) -> Amount:
    usd = text(data, "usd")
    return Amount(
        1, count(data, "input") or 0, count(data, "output") or 0, Decimal(usd) if usd else None
    )


def _sum(lines: Iterable[dict[str, Any]], name: str) -> int | None:
    """The sum of what was told; unknown when there were calls and none told it."""
    listed = list(lines)
    known = [value for line in listed if (value := count(line, name)) is not None]
    return sum(known) if known or not listed else None


def _usd(lines: Iterable[dict[str, Any]]) -> Decimal | None:
    """The sum in USD; unknown as soon as the price of one call is, or when none told its tokens."""
    listed = list(lines)
    if any(line.get("usd_basis") != "gateway" for line in listed):
        return None
    known = [Decimal(usd) for line in listed if (usd := text(line, "usd"))]
    return sum(known, Decimal()) if known or not listed else None
