"""The verdict follows from findings by rule."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eop.patterns.verdict import SEVERITIES, Verdict, judge, merge, worst_open


def finding(severity: str, name: str = "F", status: str = "open") -> dict[str, Any]:
    return {"id": name, "severity": severity, "status": status, "claim": "c", "evidence": "e"}


FINDINGS = st.lists(
    st.builds(
        finding,
        st.sampled_from(SEVERITIES),
        st.sampled_from("ABC"),
        st.sampled_from(["open", "resolved"]),
    ),
    max_size=5,
)


@pytest.mark.parametrize(
    ("severity", "check_passed", "last", "verdict"),
    [
        (None, None, False, Verdict.APPROVED),
        (None, True, False, Verdict.APPROVED),
        (None, False, False, Verdict.FIX),
        (None, False, True, Verdict.NOT_APPROVED),
        ("info", None, False, Verdict.APPROVED),
        ("minor", True, False, Verdict.APPROVED),
        ("minor", False, False, Verdict.FIX),
        ("major", True, False, Verdict.FIX),
        ("major", True, True, Verdict.ROUNDS_SPENT),
        ("major", None, True, Verdict.ROUNDS_SPENT),
        ("critical", True, False, Verdict.FIX),
        ("critical", True, True, Verdict.NOT_APPROVED),
        ("critical", None, True, Verdict.NOT_APPROVED),
    ],
)
def test_the_table(
    severity: str | None, check_passed: bool | None, last: bool, verdict: Verdict
) -> None:
    findings = [finding(severity)] if severity else []
    ruling = judge(findings, until="minor", check_passed=check_passed, last_round=last)
    assert ruling is verdict


def test_silence_closes_nothing() -> None:
    ledger = merge([], [finding("critical")])
    assert worst_open(merge(ledger, [])) == "critical"
    resolved = merge(ledger, [finding("critical", status="resolved")])
    assert worst_open(resolved) is None
    assert worst_open(merge(resolved, [finding("critical")])) == "critical"


def test_open_outweighs_resolved_within_one_review() -> None:
    both = [finding("major"), finding("major", status="resolved")]
    assert worst_open(merge([], both)) == "major"
    assert worst_open(merge([], both[::-1])) == "major"


@given(FINDINGS, FINDINGS)
def test_a_later_review_closes_only_what_it_names(
    first: list[dict[str, Any]], second: list[dict[str, Any]]
) -> None:
    before, after = merge([], first), merge(merge([], first), second)
    assert {f["id"] for f in before} <= {f["id"] for f in after}
    named = {f["id"] for f in second}
    assert [f for f in after if f["id"] not in named] == [f for f in before if f["id"] not in named]


@given(FINDINGS, st.sampled_from(SEVERITIES), st.booleans())
def test_approval_never_hides_a_worse_finding(
    findings: list[dict[str, Any]], until: str, last: bool
) -> None:
    ruling = judge(findings, until=until, check_passed=True, last_round=last)
    worst = worst_open(findings)
    fine = worst is None or SEVERITIES.index(worst) <= SEVERITIES.index(until)
    assert (ruling is Verdict.APPROVED) == fine
