"""What is spent: known, a lower bound, or unknown; in every place that shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from research_run import Run, research

from eop.protocol.model import Budget
from eop.report import Follower
from eop.report.spending import Spend, spending
from eop.report.terminal import spend_text
from eop.report.words import spent as in_words
from eop.runtime.node import Outcome, Usage

if TYPE_CHECKING:
    from pathlib import Path


def spent(run: Run) -> dict[str, Spend]:
    found = spending(run.plan, run.trace.state(), run.trace.events())
    return {one.unit: one for one in found}


def told(run: Run, usage: Usage) -> str:
    follower = Follower(run.folder / "trace", run.plan)
    run.do("it01_investigate", usage=usage)
    return follower.news()[-1]


def test_what_nobody_has_spent_is_not_listed(tmp_path: Path) -> None:
    run = Run(tmp_path)
    assert spent(run).keys() == {"actions", "wall_s"}
    assert "tokens" not in told(run, Usage(3, 1.0, tokens=0, micro_usd=0)), "no model was called"
    assert spent(run).keys() == {"actions", "wall_s"}


def test_what_products_report_is_summed(tmp_path: Path) -> None:
    run = Run(tmp_path)
    assert ", 1234567 tokens, 0.25 US dollars" in told(run, Usage(3, 1.0, 1_234_567, 250_000))
    run.touch()
    run.do("it01_propose", usage=Usage(3, 1.0, 10, 1))
    assert spent(run)["tokens"] == Spend("tokens", 1_234_577, 0, None, 0)
    assert spend_text(spent(run)["tokens"]) == "tokens: 1,234,577 spent, no limit"
    assert spend_text(spent(run)["usd"]) == "US dollars: 0.250001 spent, no limit"


def test_what_nobody_could_count_is_unknown_and_a_sum_with_it_a_lower_bound(tmp_path: Path) -> None:
    run = Run(tmp_path)
    assert ", 700 tokens, US dollars unknown" in told(run, Usage(3, 1.0, tokens=700))
    assert spent(run)["usd"] == Spend("usd", None, 0, None, 1)
    assert spend_text(spent(run)["usd"]).startswith("US dollars: unknown; 1 attempt could")
    assert in_words(spent(run)["usd"])[0] == "unknown"
    run.touch()
    run.enter("it01_propose")
    run.trace.append("node_abandoned", {"node": "it01_propose", "attempt": 1, "reason": "died"})
    assert spent(run)["tokens"] == Spend("tokens", 700, 0, None, 1)
    text = "tokens: at least 700 spent, no limit; 1 attempt could not be metered"
    assert spend_text(spent(run)["tokens"]) == text


def test_functions_call_no_model(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.to_branches()
    run.do("it01_p01_implement")
    before = spent(run)
    run.do("it01_p01_train", Outcome.FAILED, Usage(0, 1.0))
    assert spent(run)["tokens"] == before["tokens"]


def test_a_unit_that_the_run_limits_is_told_with_its_limit(tmp_path: Path) -> None:
    budget = Budget(actions=500, wall_s=36000, tokens=9000, micro_usd=3_000_000)
    run = Run(tmp_path, research(budget=budget))
    assert ", 700 of 9000 tokens, 0.5 of 3 US dollars" in told(run, Usage(3, 1.0, 700, 500_000))
    assert spend_text(spent(run)["usd"]) == "US dollars: 0.5 of 3 spent"


def test_work_is_told_in_hours_and_minutes() -> None:
    work = Spend("wall_s", 3725.25, 120.0, 324000.0, 0)
    assert spend_text(work) == "time at work: 1 h 02 m of 90 h 00 m spent, 2 m 00 s reserved"
