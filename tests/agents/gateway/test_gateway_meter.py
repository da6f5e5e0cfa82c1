"""Requests, prices and caps: what a call can come to, and that no cap is ever passed."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eop.agents.contract import Limits
from eop.agents.gateway.asked import Asked, amended, read
from eop.agents.gateway.meter import (
    Admitted,
    Amount,
    Caps,
    Meter,
    Refused,
    Why,
    charge,
)
from eop.agents.gateway.prices import NO_PRICES, Price, Prices, Rates, load
from eop.agents.gateway.told import Told, Wire
from eop.core.errors import EopError
from eop.core.yaml_files import read_yaml
from eop.project.prices import read_prices

ROOT = Path(__file__).parents[3]
RATES = Rates(Decimal("3"), Decimal("15"), Decimal("0.3"), Decimal("3.75"), Decimal("6"))
LONG = Rates(Decimal("6"), Decimal("22.5"), Decimal("0.6"), Decimal("7.5"), Decimal("12"))
PRICES = Prices(models={"m": Price(RATES, 1000, LONG, most_output=5000)})
COUNT = st.integers(0, 3000)


def asked(**changes: Any) -> Asked:
    return Asked(**{"model": "m", "most_input": 100, "most_output": 50, **changes})


def refused(caps: Caps, wanted: Asked, prices: Prices = PRICES, **taken: Any) -> Refused:
    decided = Meter(caps, prices, Amount(**taken)).admit(1, wanted)
    assert isinstance(decided, Refused)
    return decided


@st.composite
def calls(draw: st.DrawFn) -> tuple[Asked, float, bool]:
    """A request, the share of its bounds that its answer uses, and whether the answer is whole."""
    bound = draw(st.none() | COUNT)
    wanted = asked(most_input=draw(COUNT), most_output=bound, answers=draw(st.integers(1, 3)))
    return wanted, draw(st.floats(0, 1)), draw(st.booleans())


@given(
    st.lists(st.tuples(calls(), st.booleans()), max_size=12),
    st.builds(
        Caps,
        st.none() | st.integers(0, 6),
        st.none() | st.integers(0, 9000),
        st.none() | st.integers(0, 9000),
        st.none() | st.integers(0, 9000),
        st.none() | st.decimals(0, 1, places=4),
    ),
)
def test_no_cap_is_passed_however_calls_overlap_and_end(
    plan: list[tuple[tuple[Asked, float, bool], bool]], caps: Caps
) -> None:
    meter = Meter(caps, PRICES)
    under_way: list[tuple[int, Admitted, float, bool]] = []

    def end_one() -> None:
        number, admitted, share, whole = under_way.pop(0)
        held = admitted.reserved
        # Without caps on tokens nothing was held for the input: the answer tells what it was.
        told = Told(
            uncached=int(held.input * share), output=int(held.output * share), finished=whole
        )
        meter.settle(number, charge(admitted, told))

    for number, ((wanted, share, whole), wait) in enumerate(plan):
        decided = meter.admit(number, wanted)
        if isinstance(decided, Admitted):
            under_way.append((number, decided, share, whole))
        if not wait and under_way:
            end_one()
        holds(caps, meter.taken)
    while under_way:
        end_one()
    holds(caps, meter.spent)
    assert meter.taken == meter.spent


def holds(caps: Caps, taken: Amount) -> None:
    assert caps.calls is None or taken.calls <= caps.calls
    assert caps.input is None or taken.input <= caps.input
    assert caps.output is None or taken.output <= caps.output
    assert caps.tokens is None or taken.input + taken.output <= caps.tokens
    assert caps.usd is None or (taken.usd is not None and taken.usd <= caps.usd)


@given(COUNT, COUNT, COUNT, COUNT, COUNT)
def test_a_cost_is_exact_and_never_over_its_bound(
    uncached: int, hit: int, put: int, hour: int, output: int
) -> None:
    told = Told("m", uncached, hit, put, min(hour, put), output, finished=True)
    price = PRICES.models["m"]
    rates = LONG if uncached + hit + put > 1000 else RATES
    assert rates.cache_read and rates.cache_write and rates.cache_write_1h
    parts = (
        (uncached, rates.input),
        (hit, rates.cache_read),
        (put - min(hour, put), rates.cache_write),
        (min(hour, put), rates.cache_write_1h),
        (output, rates.output),
    )
    cost = price.cost(told)
    assert cost is not None
    assert Fraction(cost) == sum(Fraction(rate) * count for count, rate in parts) / 10**6
    assert cost <= price.most(uncached + hit + put, output)


def test_the_long_rates_begin_above_their_bound() -> None:
    price = PRICES.models["m"]
    at, above = (price.cost(Told("m", tokens, output=0)) for tokens in (1000, 1001))
    assert (at, above) == (Decimal("0.003"), Decimal("0.006006"))


@given(st.decimals(0, 1, places=6), COUNT)
def test_the_output_that_money_pays_for_is_paid_for(usd: Decimal, tokens: int) -> None:
    price = PRICES.models["m"]
    fits = price.output_for(usd, tokens)
    assert fits == 0 or price.most(tokens, fits) <= usd
    assert price.most(tokens, fits + 1) > usd


def test_a_model_without_a_price_has_an_unknown_cost_and_no_budget_in_usd() -> None:
    free = Meter(Caps(tokens=1000), NO_PRICES)
    decided = free.admit(1, asked())
    assert isinstance(decided, Admitted)
    assert decided.reserved.usd is None
    assert charge(decided, Told("m", 10, output=5, finished=True)) == Amount(1, 10, 5, None)
    assert refused(Caps(usd=Decimal(5)), asked(), NO_PRICES).why is Why.UNPRICED
    # So has a service that is not the list's, and so has all that follows an unknown cost.
    assert refused(Caps(usd=Decimal(5)), asked(list_price=False)).why is Why.UNPRICED
    assert refused(Caps(usd=Decimal(5)), asked(), usd=None).why is Why.UNPRICED


@pytest.mark.parametrize(
    ("caps", "taken"),
    [
        (Caps(calls=1), {"calls": 1}),
        (Caps(input=120), {"input": 21}),
        (Caps(output=60), {"output": 11}),
        (Caps(tokens=200), {"input": 30, "output": 21}),
        (Caps(usd=Decimal("0.001349")), {}),
    ],
)
def test_a_call_that_could_pass_a_cap_is_refused(caps: Caps, taken: dict[str, Any]) -> None:
    decided = refused(caps, asked(), **taken)
    assert decided.why is Why.BUDGET
    assert decided.detail.startswith("run budget exhausted: ")
    less = {name: value - 1 for name, value in taken.items()}
    wider = caps if taken else Caps(usd=Decimal("0.00135"))
    assert isinstance(Meter(wider, PRICES, Amount(**less)).admit(1, asked()), Admitted)


def test_a_request_without_a_bound_is_given_what_is_left() -> None:
    open_end = asked(most_output=None)
    meter = Meter(Caps(tokens=1000), PRICES)
    decided = meter.admit(1, open_end)
    assert isinstance(decided, Admitted)
    assert (decided.most_output, decided.reserved.output) == (900, 900)
    assert refused(Caps(tokens=1000), open_end, input=885).why is Why.BUDGET
    # More than the model can write is not asked for, and nothing is added where nothing is held.
    wide = Meter(Caps(tokens=10**6), PRICES).admit(1, open_end)
    assert isinstance(wide, Admitted)
    assert wide.most_output == 5000
    unheld = Meter(Caps(calls=3), PRICES).admit(1, open_end)
    assert isinstance(unheld, Admitted)
    assert unheld.most_output is None


def test_what_nothing_bounds_is_refused_where_something_is_held() -> None:
    body = {"model": "m", "previous_response_id": "r"}
    wanted = read(Wire.RESPONSES, body, 60)
    assert wanted.most_input is None
    assert refused(Caps(tokens=10**9), wanted).why is Why.UNBOUNDED
    assert isinstance(Meter(Caps(calls=1), PRICES).admit(1, wanted), Admitted)


def test_the_end_of_a_call_that_is_not_known_is_charged_at_its_worst() -> None:
    held = Admitted(Amount(1, 4000, 900, Decimal("0.05")), PRICES.models["m"])
    assert charge(held, None) == Amount(1)
    assert charge(held, Told()).output == 900
    assert charge(held, Told()).input == 4000
    begun = charge(held, Told("m", 300, output=1))
    assert (begun.input, begun.output) == (300, 900)
    assert begun.usd == PRICES.models["m"].most(300, 900)


@pytest.mark.parametrize(
    ("wire", "body", "expected"),
    [
        (Wire.MESSAGES, {"max_tokens": 7}, 7),
        (Wire.RESPONSES, {"max_output_tokens": 7}, 7),
        (Wire.CHAT, {"max_tokens": 7, "max_completion_tokens": 9, "n": 2}, 18),
        (Wire.CHAT, {"max_tokens": "7"}, None),
    ],
)
def test_the_bound_that_a_request_sets(wire: Wire, body: dict[str, Any], expected: Any) -> None:
    assert read(wire, body, 10).most_output == expected


@given(st.text(min_size=1, max_size=60), st.integers(0, 3))
def test_every_byte_may_be_a_token_and_an_image_is_many(word: str, images: int) -> None:
    text = word * 1000
    parts = [{"type": "text", "text": text}, *[{"type": "image", "source": {}}] * images]
    body = {"messages": [{"role": "user", "content": parts}]}
    size = len(json.dumps(body).encode())
    bound = read(Wire.MESSAGES, body, size).most_input
    assert bound is not None
    assert bound >= len(text.encode()) + images * 5000


@pytest.mark.parametrize(
    ("wire", "part"),
    [
        (Wire.MESSAGES, {"type": "document", "source": {"type": "url", "url": "https://x"}}),
        (Wire.MESSAGES, {"type": "tool_result", "content": [{"type": "document"}]}),
        (Wire.CHAT, {"type": "file", "file": {"file_id": "f"}}),
    ],
)
def test_a_file_by_its_name_has_no_bound(wire: Wire, part: dict[str, Any]) -> None:
    body = {"messages": [{"role": "user", "content": [part]}]}
    assert read(wire, body, 100).most_input is None
    inputs = {"input": [{"type": "message", "content": [{"type": "input_file"}]}]}
    assert read(Wire.RESPONSES, inputs, 100).most_input is None


def test_words_in_the_arguments_of_a_tool_are_no_parts() -> None:
    use = {"type": "tool_use", "name": "Find", "input": {"type": "file", "path": "a"}}
    body = {"messages": [{"role": "assistant", "content": [use]}]}
    assert read(Wire.MESSAGES, body, 100).most_input is not None


@pytest.mark.parametrize(
    "more",
    [
        {"background": True},
        {"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
        {"tools": [{"type": "code_interpreter", "container": {}}]},
        {"tools": [{"type": "mcp", "server_url": "https://x"}]},
        {"mcp_servers": [{"url": "https://x"}]},
        {"web_search_options": {"x": 1}},
    ],
)
def test_what_reaches_further_than_an_agent_may_is_forbidden(more: dict[str, Any]) -> None:
    wanted = read(Wire.RESPONSES, {"model": "m", **more}, 10)
    assert refused(Caps(), wanted).why is Why.FORBIDDEN
    own = {"tools": [{"type": "function", "name": "f"}, {"type": "bash_20250124", "name": "bash"}]}
    assert read(Wire.RESPONSES, own, 10).refusal is None


def test_a_chat_stream_is_asked_for_its_usage_and_nothing_else_is_touched() -> None:
    body = {"model": "m", "stream": True, "stream_options": {"x": 1}}
    changed = amended(Wire.CHAT, body, None)
    assert changed == {**body, "stream_options": {"x": 1, "include_usage": True}}
    assert amended(Wire.CHAT, {"model": "m"}, 20) == {"model": "m", "max_completion_tokens": 20}
    assert amended(Wire.RESPONSES, {}, 20) == {"max_output_tokens": 20}
    assert amended(Wire.MESSAGES, body, None) == body


def test_limits_become_caps_exactly() -> None:
    limits = Limits(model_calls=1, input_tokens=2, output_tokens=3, tokens=4, usd=0.1)
    assert Caps.of(limits) == Caps(1, 2, 3, 4, Decimal("0.1"))


def test_the_shipped_table_is_sound_and_knows_dated_releases() -> None:
    prices = read_prices(ROOT)
    assert prices.read_on is not None
    assert prices.of("claude-sonnet-4-5-20250929") is prices.models["claude-sonnet-4-5"]
    assert prices.of("gpt-5.4-2026-03-05") is prices.models["gpt-5.4"]
    assert prices.of("claude-sonnet-4-5-thinking") is None
    assert prices.of(None) is None
    for name, price in prices.models.items():
        assert price.rates.output > price.rates.input > (price.rates.cache_read or 0), name


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("models: {m: {input: 3, output: '15'}}", "models.m.input: 3 is not of type 'string'"),
        ("models: {m: {input: '3', out: '15'}}", "unknown key 'out'"),
        ("models: {m: {input: '-3', output: '15'}}", "does not match"),
        ("models: [", "not valid YAML"),
    ],
)
def test_a_wrong_table_is_refused(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "prices.yaml"
    path.write_text(f"read_on: '2026-01-01'\nsource: x\n{text}\n")
    with pytest.raises(EopError, match=says):
        load(path, read_yaml(ROOT / "config/schemas/prices.schema.yaml"))
    assert load(tmp_path / "none.yaml", {}) is NO_PRICES
