"""What tokens cost: a dated table of list prices, in exact decimal arithmetic."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import yaml

from eop.core.errors import EopError, ExitCode, Where
from eop.core.schema import problems
from eop.core.yaml_files import read_yaml

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from eop.agents.gateway.told import Told

_NO_BOUND = 10**12
# `claude-sonnet-4-5-20250929` and `gpt-5.4-2026-03-05` are releases of the models so named.
_RELEASE = re.compile(r"-(?:\d{8}|\d{4}-\d{2}-\d{2})$")


@dataclass(frozen=True)
class Rates:
    """USD per million tokens.

    Without a rate of its own, what was read from a cache or written to it costs what input costs;
    what was written to be kept for an hour has no price then.
    """

    input: Decimal
    output: Decimal
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None
    cache_write_1h: Decimal | None = None

    def cost(self, told: Told) -> Decimal | None:
        """What the tokens that were told cost in USD; ``None`` when one of them has no price."""
        written, hour = told.cache_write or 0, told.cache_write_1h or 0
        hour = min(written, hour)
        if hour and self.cache_write_1h is None:
            return None
        parts = (
            (told.uncached or 0, self.input),
            (told.cache_read or 0, self.cache_read),
            (written - hour, self.cache_write),
            (hour, self.cache_write_1h),
            (told.output or 0, self.output),
        )
        total = sum((n * (self.input if rate is None else rate) for n, rate in parts), Decimal())
        return total.scaleb(-6)

    def most(self, tokens: int, output: int) -> Decimal:
        """The most that so many tokens of input and output can cost, cached or not."""
        rates = (self.input, self.cache_read, self.cache_write, self.cache_write_1h)
        dearest = max(rate for rate in rates if rate is not None)
        return (tokens * dearest + output * self.output).scaleb(-6)


@dataclass(frozen=True)
class Price:
    """The rates of a model, and those of calls that read more than ``long_over`` tokens."""

    rates: Rates
    long_over: int | None = None
    long: Rates | None = None
    most_output: int | None = None

    def cost(self, told: Told) -> Decimal | None:
        """What a call cost in USD, as far as its tokens were told."""
        return self._of(told.input or 0).cost(told)

    def most(self, tokens: int, output: int) -> Decimal:
        """An upper bound in USD for a call that reads and writes no more than that."""
        return max(self.rates.most(tokens, output), self._of(tokens).most(tokens, output))

    def output_for(self, usd: Decimal, tokens: int) -> int:
        """How many tokens of output ``usd`` pays for, after ``tokens`` of input; never negative."""
        left = usd - self.most(tokens, 0)
        dearest = max(self.rates.output, self._of(tokens).output)
        return max(0, int(left.scaleb(6) / dearest)) if dearest else _NO_BOUND

    def _of(self, tokens: int) -> Rates:
        if self.long is not None and self.long_over is not None and tokens > self.long_over:
            return self.long
        return self.rates


@dataclass(frozen=True)
class Prices:
    """The table: prices by model, the day when they were read, and where."""

    read_on: date | None = None
    source: str = ""
    models: Mapping[str, Price] = field(default_factory=dict)

    def of(self, model: str | None) -> Price | None:
        """The price of a model or of the model that it is a dated release of; ``None`` without."""
        if not model:
            return None
        return self.models.get(model) or self.models.get(_RELEASE.sub("", model))


NO_PRICES = Prices()


def load(path: Path, schema: Mapping[str, Any]) -> Prices:
    """Read ``config/prices.yaml``; no such file is an empty table.

    ``EopError`` (exit CONFIG) with every fault of the file. Amounts are text in the file, so that
    no float comes between it and the sum.
    """
    try:
        data = read_yaml(path)
    except FileNotFoundError:
        return NO_PRICES
    except yaml.YAMLError as error:
        raise _wrong(path, f"not valid YAML: {error}") from error
    faults = problems(data, dict(schema))
    if faults:
        raise _wrong(path, "; ".join(faults))
    models = {name: _price(given) for name, given in data["models"].items()}
    return Prices(date.fromisoformat(data["read_on"]), data["source"], models)


def _wrong(path: Path, what: str) -> EopError:
    return EopError(
        "EOP876",
        f"the price table is wrong: {what}",
        where=Where(str(path)),
        hint="its keys are described in config/schemas/prices.schema.yaml",
        exit_code=ExitCode.CONFIG,
    )


def _price(given: dict[str, Any]) -> Price:
    longer = given.get("long")
    return Price(
        _rates(given),
        longer["over"] if longer else None,
        _rates(longer) if longer else None,
        given.get("most_output"),
    )


def _rates(given: dict[str, Any]) -> Rates:
    names = ("input", "output", "cache_read", "cache_write", "cache_write_1h")
    return Rates(**{name: Decimal(given[name]) for name in names if name in given})
