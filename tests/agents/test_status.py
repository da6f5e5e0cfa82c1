"""The status follows from the facts, first match first."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eop.agents.contract import Event, Mode, Status
from eop.agents.status import Facts, actions, decide

FINAL = (Event("started", {}), Event("final", {"status": "success"}))
GOOD = Facts(Mode.WRITE, rc=0, events=FINAL, changed=True)
DENIED = (*FINAL, Event("tool_call", {"id": "1", "outcome": "denied"}))


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
        ({"rc": 2, "events": ()}, Status.FAILED),
        ({"rc": -11}, Status.FAILED),
        ({"rc": None}, Status.FAILED),
        ({"stop": "caller"}, Status.FAILED),
        ({"over_budget": True, "rc": 1}, Status.BUDGET_EXHAUSTED),
        ({"stop": "output", "rc": -15}, Status.BUDGET_EXHAUSTED),
        ({"violations": ("p: protected",), "over_budget": True}, Status.POLICY_VIOLATION),
        ({"stop": "idle", "violations": ("p",)}, Status.TIMEOUT),
        ({"setup_error": "", "stop": "wall"}, Status.SETUP_ERROR),
    ],
)
def test_the_first_match_wins(change: dict[str, object], status: Status) -> None:
    assert decide(replace(GOOD, **change))[0] is status  # type: ignore[arg-type]


@given(
    st.builds(
        Facts,
        mode=st.sampled_from(Mode),
        stop=st.sampled_from([None, "wall", "idle", "output", "actions", "caller"]),
        rc=st.sampled_from([None, 0, 1, -9]),
        violations=st.sampled_from([(), ("v",)]),
        events=st.sampled_from([(), FINAL, FINAL[:1], DENIED]),
        over_budget=st.booleans(),
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
        assert not facts.over_budget
        assert facts.events[-1:] != ()
        assert facts.changed or facts.mode is Mode.READ_ONLY


def test_calls_without_an_id_all_count() -> None:
    call = Event("tool_call", {})
    assert actions([FINAL[0], call, call]) == 2
    assert actions([call]) is None
