"""The status follows from the facts, first match first."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eop.agents.contract import Limits, Mode, Status, Stop, Usage
from eop.agents.events import Event, counters, usage
from eop.agents.retry import RETRIES, wait_s
from eop.agents.status import JUDGES, Facts, decide

FINAL = (Event("started"), Event("final", {"status": "success"}))
GOOD = Facts(Mode.WRITE, rc=0, events=FINAL, changed=True)
DENIED = (*FINAL, Event("tool_call", {"id": "1", "outcome": "denied"}))
NO_TOKENS = (*FINAL, Event("usage", {"output": 0}))
CALLS = (*FINAL, Event("tool_call", {"id": "1"}), Event("tool_call", {"id": "2"}))
ERRORS = (
    Status.TRANSIENT_ERROR,
    Status.AUTH_ERROR,
    Status.QUOTA_EXHAUSTED,
    Status.CONFIG_ERROR,
    Status.REFUSED,
    Status.CONTEXT_OVERFLOW,
    Status.STUCK,
)


def failed(error: Status | None) -> tuple[Event, ...]:
    return (Event("started"), Event("final", {"status": "error", "error": error}))


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, Status.OK),
        ({"changed": False}, Status.NO_CHANGE),
        ({"changed": False, "mode": Mode.READ_ONLY}, Status.OK),
        ({"changed": False, "events": DENIED}, Status.BLOCKED),
        ({"events": DENIED}, Status.OK),
        ({"missing": ("x was not left",)}, Status.INVALID_OUTPUT),
        ({"events": ()}, Status.INVALID_OUTPUT),
        ({"events": NO_TOKENS}, Status.INVALID_OUTPUT),
        ({"events": (*FINAL, Event("usage", {"output": 0, "model_calls": 0}))}, Status.OK),
        ({"events": failed(None)}, Status.INVALID_OUTPUT),
        ({"events": failed(Status.INVALID_OUTPUT)}, Status.INVALID_OUTPUT),
        ({"rc": 2, "events": ()}, Status.SETUP_ERROR),
        ({"rc": 2, "events": (Event("other"),)}, Status.SETUP_ERROR),
        ({"rc": 2, "events": FINAL[:1]}, Status.INVALID_OUTPUT),
        ({"rc": 143, "events": ()}, Status.INVALID_OUTPUT),
        ({"rc": -9, "events": ()}, Status.INVALID_OUTPUT),
        ({"rc": 2, "stop": Stop.TIMEOUT, "events": ()}, Status.TIMEOUT),
        ({"rc": -11}, Status.INVALID_OUTPUT),
        ({"rc": None}, Status.INVALID_OUTPUT),
        ({"rc": -15, "lingered": True}, Status.OK),
        ({"stop": Stop.CANCELLED}, Status.CANCELLED),
        ({"events": CALLS, "limits": Limits(actions=1), "rc": 1}, Status.BUDGET_EXHAUSTED),
        ({"events": CALLS, "limits": Limits(actions=2)}, Status.OK),
        ({"stop": Stop.OUTPUT_CAP, "rc": -15}, Status.BUDGET_EXHAUSTED),
        ({"stop": Stop.BUDGET, "rc": -15}, Status.BUDGET_EXHAUSTED),
        ({"events": failed(Status.BUDGET_EXHAUSTED)}, Status.BUDGET_EXHAUSTED),
        ({"events": failed(Status.SETUP_ERROR)}, Status.SETUP_ERROR),
        ({"violations": ("p",), "stop": Stop.BUDGET}, Status.POLICY_VIOLATION),
        ({"stop": Stop.IDLE, "violations": ("p",)}, Status.TIMEOUT),
        ({"setup_error": "", "stop": Stop.TIMEOUT}, Status.SETUP_ERROR),
        *(({"events": failed(error), "rc": 1}, error) for error in ERRORS),
        *(
            ({"events": failed(error), "violations": ("p",)}, Status.POLICY_VIOLATION)
            for error in ERRORS
        ),
    ],
)
def test_the_first_match_wins(change: dict[str, object], status: Status) -> None:
    assert decide(replace(GOOD, **change))[0] is status  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("unit", "told"),
    [
        ("input_tokens", {"input": 11}),
        ("output_tokens", {"output": 11}),
        ("usd", {"usd": 10.5}),
        ("model_calls", {"model_calls": 11}),
    ],
)
def test_every_unit_of_the_budget_is_judged_and_unknown_is_not_over(
    unit: str, told: dict[str, float]
) -> None:
    facts = replace(GOOD, limits=Limits(**{unit: 10}))  # type: ignore[arg-type]
    status, reason = decide(replace(facts, events=(*FINAL, Event("usage", told))))
    assert (status, reason.code) == (Status.BUDGET_EXHAUSTED, unit)
    assert decide(facts)[0] is Status.OK


def test_the_order_is_the_contract() -> None:
    """Facts to which several judges say yes: the earlier one in this list has the word."""
    order = [status for status, _ in JUDGES]
    assert order == list(Status)[:-1]
    everything = replace(GOOD, changed=False, missing=("m",), violations=("v",), setup_error="s")
    for first, second in pairwise(["setup_error", "violations", "missing"]):
        expected = {
            "setup_error": Status.SETUP_ERROR,
            "violations": Status.POLICY_VIOLATION,
            "missing": Status.INVALID_OUTPUT,
        }
        assert decide(everything)[0] is expected[first]
        everything = replace(everything, **{first: None if first == "setup_error" else ()})
        assert decide(everything)[0] is expected[second]
    everything = replace(everything, missing=(), events=DENIED)
    assert decide(everything)[0] is Status.BLOCKED


def test_the_documented_order_is_the_order() -> None:
    text = (Path(__file__).parents[2] / "docs/agents.md").read_text()
    text = text[text.index("**The status**") : text.index("*Pause*")]
    rows = re.findall(r"^\| `(\w+)` \|.*\| (.*?) \|$", text, re.MULTILINE)
    assert [name for name, _ in rows] == list(Status)
    for name, again in rows:
        retry = RETRIES[Status(name)]
        assert again.startswith(str(retry.most) if retry.most else "no")
        assert ("pause" in again) == retry.pause


@given(
    st.builds(
        Facts,
        mode=st.sampled_from(Mode),
        stop=st.sampled_from([None, *Stop]),
        rc=st.sampled_from([None, 0, 1, -9]),
        violations=st.sampled_from([(), ("v",)]),
        events=st.sampled_from(
            [(), FINAL, FINAL[:1], DENIED, NO_TOKENS, CALLS, *(failed(e) for e in ERRORS)]
        ),
        limits=st.sampled_from([Limits(), Limits(actions=1)]),
        missing=st.sampled_from([(), ("m",)]),
        changed=st.booleans(),
    )
)
def test_ok_needs_everything(facts: Facts) -> None:
    if decide(facts)[0] is Status.OK:
        assert facts.rc == 0
        assert facts.stop is None
        assert not facts.violations
        assert not facts.missing
        assert facts.events in (FINAL, DENIED, CALLS)
        assert facts.events != CALLS or facts.limits.actions is None
        assert facts.changed or facts.mode is Mode.READ_ONLY


def test_success_without_a_call_that_anybody_saw_is_none() -> None:
    seen = replace(GOOD, counted=(Usage(input=1, output=1, complete=True), 1))
    assert decide(seen)[0] is Status.OK
    status, reason = decide(replace(GOOD, counted=(Usage(), 0)))
    assert (status, reason.code) == (Status.INVALID_OUTPUT, "no_calls")


def test_calls_without_an_id_all_count() -> None:
    call = Event("tool_call")
    assert counters([FINAL[0], call, call]).actions == 2
    assert counters([FINAL[1]]).actions is None
    assert counters([]).model_calls is None


def test_a_denial_told_twice_is_one() -> None:
    both = (*DENIED, Event("denied", {"id": "1"}), Event("denied", {"id": "2"}))
    assert counters(both).denied == 2


def test_usage_that_nobody_told_is_unknown() -> None:
    found = usage(FINAL)
    assert (found.input, found.output, found.usd, found.source) == (None, None, None, None)
    assert not found.complete


def test_every_status_has_a_retry_class() -> None:
    assert set(RETRIES) == set(Status)
    again = {status: retry.most for status, retry in RETRIES.items() if retry.most}
    assert again == {Status.TRANSIENT_ERROR: 2, Status.INVALID_OUTPUT: 1}
    assert {status for status, retry in RETRIES.items() if retry.pause} == {
        Status.SETUP_ERROR, Status.AUTH_ERROR, Status.CONFIG_ERROR, Status.QUOTA_EXHAUSTED,
    }  # fmt: skip


def test_only_transient_errors_wait_and_ever_longer() -> None:
    assert 2 <= wait_s(Status.TRANSIENT_ERROR, 1) <= 3
    assert 8 <= wait_s(Status.TRANSIENT_ERROR, 2) <= 12
    assert wait_s(Status.INVALID_OUTPUT, 1) == 0
