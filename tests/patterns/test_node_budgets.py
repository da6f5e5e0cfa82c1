"""A node's own budget, and units that only products can measure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toy_target import linear_phase, scripted, task

from eop.patterns import run
from eop.protocol.model import Budget
from eop.runtime.node import Outcome

if TYPE_CHECKING:
    from pathlib import Path

WRITE = {"write": {"output": "report", "text": "fine\n"}}
CHAIN = {"first": "scripted", "second": "scripted"}


def spends(**usage: Any) -> dict[str, Any]:
    return {"usage": usage, "do": [WRITE]}


def test_a_usage_sums_what_the_products_report(tmp_path: Path) -> None:
    step = spends(input=700, output=50, usd=0.1)
    result = run(task(tmp_path, linear_phase(nodes=CHAIN), scripted(tmp_path, step)))
    assert result.outcome is Outcome.COMPLETED
    assert (result.usage.tokens, result.usage.micro_usd) == (1500, 200_000)


def test_a_cost_that_nobody_reports_is_unknown_and_uses_up_what_is_limited(tmp_path: Path) -> None:
    phase = linear_phase(nodes=CHAIN, budget=Budget(micro_usd=500_000))
    result = run(task(tmp_path, phase, scripted(tmp_path, spends(input=1, output=1))))
    assert result.usage.micro_usd is None
    assert result.outcome is Outcome.BUDGET_EXHAUSTED
    assert "the phase's budget of micro_usd is spent" in result.reason


def test_a_node_that_spends_more_than_its_own_is_stopped_within_its_phase(tmp_path: Path) -> None:
    phase = linear_phase(
        nodes=CHAIN,
        budget=Budget(tokens=10_000),
        node_budgets={"second": Budget(tokens=99)},
    )
    result = run(task(tmp_path, phase, scripted(tmp_path, spends(input=60, output=40))))
    assert result.outcome is Outcome.BUDGET_EXHAUSTED
    assert result.reason.startswith("second: budget_exhausted: ")
    assert "more tokens than" in result.reason
    assert result.usage.tokens == 200


def test_a_node_has_no_more_than_its_phase_has_left(tmp_path: Path) -> None:
    phase = linear_phase(
        nodes=CHAIN, budget=Budget(tokens=100), node_budgets={"second": Budget(tokens=100)}
    )
    result = run(task(tmp_path, phase, scripted(tmp_path, spends(input=60, output=40))))
    assert result.outcome is Outcome.BUDGET_EXHAUSTED
    assert result.reason == "the phase's budget of tokens is spent"


def test_attempts_of_a_node_are_its_own(tmp_path: Path) -> None:
    phase = linear_phase(
        nodes=CHAIN, budget=Budget(attempts=3), node_budgets={"first": Budget(attempts=1)}
    )
    broken = scripted(tmp_path, {"when": {"role": "first", "attempt": 1}, "do": [{"crash": 3}]})
    result = run(task(tmp_path, phase, broken))
    assert result.outcome is Outcome.FAILED
    assert result.reason.startswith("first: ")
    assert len(list((tmp_path / "node" / "work").glob("01-first/a*"))) == 1
