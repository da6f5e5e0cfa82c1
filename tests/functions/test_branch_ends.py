"""How a branch can end, and what its row says then."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from function_runs import PATCH, plan_of, small

from eop.core.errors import EopError
from eop.functions.branches import REJECTED, branch_end
from eop.functions.candidate import train
from eop.functions.recommender import CandidateError
from eop.functions.results import candidates, references
from eop.protocol.model import ANY, Join
from eop.runtime.node import Branch, Outcome

if TYPE_CHECKING:
    from pathlib import Path

    from function_runs import Small

_DECISION = {
    "champion": "r1-base",
    "parent": "r1-base",
    "candidates": [{"entry": "r1-it01-p01"}, {"entry": "r1-it01-p02"}],
}


def begun(root: Path) -> Small:
    run = small(root)
    run.to_branches()
    return run


def end(run: Small, branch: str = "p01") -> tuple[str, str, bool]:
    found = branch_end(run.project, run.state, 1, Branch("proposal", branch))
    return found.outcome, found.reason, found.metrics is not None


def test_cut_off(tmp_path: Path) -> None:
    plan = plan_of()
    phases = [replace(p, join=Join("analyze", 1, ANY)) if p.join else p for p in plan.phases]
    run = small(tmp_path, plan=replace(plan, phases=tuple(phases)))
    run.to_branches()
    run.branch("p02")
    run.skip("it01_p01_implement", "it01_p01_preflight", "it01_p01_train", "it01_p01_evaluate")
    reason = "implement: cut off, the join has enough"
    assert end(run) == ("cut_off", reason, False)


def test_completed(tmp_path: Path) -> None:
    run = begun(tmp_path)
    run.branch("p01")
    assert end(run) == ("completed", "", True)
    assert end(run, "p02") == ("failed", "it was never judged", False)


@pytest.mark.parametrize(
    "outcome", [Outcome.FAILED, Outcome.TIMED_OUT, Outcome.BUDGET_EXHAUSTED, Outcome.TAMPERED]
)
def test_the_first_step_that_did_not_complete_tells(tmp_path: Path, outcome: Outcome) -> None:
    run = begun(tmp_path)
    run.play("it01_p01_implement", outcome=outcome, reason="why")
    run.skip("it01_p01_preflight", "it01_p01_train", "it01_p01_evaluate")
    assert end(run) == (outcome.value, "implement: why", False)


def test_rejected_by_preflight_is_an_end_of_its_own(tmp_path: Path) -> None:
    run = begun(tmp_path)
    run.play("it01_p01_implement", {"patch": PATCH, "experiment": "a: 1\n"})
    run.play("it01_p01_preflight", outcome=Outcome.FAILED, reason="it does not start")
    run.skip("it01_p01_train", "it01_p01_evaluate")
    assert end(run) == (REJECTED, "preflight: it does not start", False)


def test_a_report_that_does_not_pass_keeps_its_branch_from_being_trained(tmp_path: Path) -> None:
    run = begun(tmp_path)
    run.play("it01_p01_implement", {"patch": PATCH, "experiment": "a: 1\n"})
    leak = {"id": "I5", "title": "one score", "status": "failed", "detail": "two"}
    run.play("it01_p01_preflight", {"preflight": {"passed": False, "invariants": [leak]}})
    run.skip("it01_p01_train", "it01_p01_evaluate")
    assert run.state.nodes["it01_p01_train"].reason == "its guard is false: preflight.passed"
    assert end(run) == (REJECTED, "preflight: I5 (one score): two", False)
    run.play("it01_p01_analyze", {"analysis": "It leaks."})
    run.lose("p02")
    run.play("it01_promote", {"decision": _DECISION})
    row, _ = candidates(run.context("it01_publish"))
    assert (row.outcome, row.not_reproducible, row.metrics) == (REJECTED, None, None)
    assert row.preflight == {"passed": False, "invariants": [leak]}


def test_no_guard_is_needed_for_what_has_not_passed_not_to_be_trained(tmp_path: Path) -> None:
    plan = plan_of()
    phases = tuple(replace(p, when=None) for p in plan.phases)
    run = small(tmp_path, plan=replace(plan, phases=phases))
    run.to_branches()
    run.play("it01_p01_implement", {"patch": PATCH, "experiment": "a: 1\n"})
    run.play("it01_p01_preflight", {"preflight": {"passed": False, "invariants": []}})
    assert run.run.enter("it01_p01_train").kind == "run"
    with pytest.raises(CandidateError, match="has not passed"):
        train(run.context("it01_p01_train"))


def test_a_preflight_that_took_too_long_rejects_nothing(tmp_path: Path) -> None:
    run = begun(tmp_path)
    run.play("it01_p01_implement", {"patch": PATCH, "experiment": "a: 1\n"})
    run.play("it01_p01_preflight", outcome=Outcome.TIMED_OUT, reason="slow")
    run.skip("it01_p01_train", "it01_p01_evaluate")
    assert end(run)[0] == "timed_out"


def test_who_writes_about_a_branch_does_not_change_its_end(tmp_path: Path) -> None:
    run = begun(tmp_path)
    run.branch("p01")
    run.play("it01_p02_implement", {"patch": PATCH, "experiment": "a: 1\n"})
    lost = run.run.folder / "it01/p01/analyze/artifacts/analysis.md"
    assert lost.is_file()
    run.play("it01_p02_preflight", {"preflight": {"passed": False, "invariants": []}})
    run.skip("it01_p02_train", "it01_p02_evaluate")
    run.play("it01_p02_analyze", outcome=Outcome.FAILED, reason="no words")
    assert end(run, "p02")[0] == REJECTED


def test_a_skipped_step_that_is_written_first_is_not_the_cause(tmp_path: Path) -> None:
    order = ("evaluate", "train", "implement", "preflight", "analyze")
    run = small(tmp_path, plan=plan_of(in_branch=order))
    run.to_branches()
    run.play("it01_p01_implement", outcome=Outcome.FAILED, reason="why")
    run.skip("it01_p01_preflight", "it01_p01_train", "it01_p01_evaluate")
    assert end(run) == ("failed", "implement: why", False)


def finished(root: Path) -> Small:
    run = begun(root)
    run.branch("p01", patch="")
    run.lose("p02")
    run.play("it01_promote", {"decision": _DECISION})
    return run


def test_rows_of_an_iteration(tmp_path: Path) -> None:
    run = finished(tmp_path)
    good, bad = candidates(run.context("it01_publish"))
    assert (good.id, good.outcome, good.parent) == ("r1-it01-p01", "completed", "r1-base")
    assert good.patch is None, "an empty patch changes no code"
    assert good.experiment is not None
    assert good.experiment.read_text() == "name: p01\n"
    assert good.checkpoint is not None
    assert good.analysis == "It went well.\n"
    assert good.not_reproducible is None
    assert (bad.outcome, bad.reason) == ("failed", "implement: it does not start")
    assert (bad.metrics, bad.checkpoint, bad.preflight, bad.patch) == (None, None, None, None)
    assert bad.analysis == "It failed.\n"
    assert "ended as failed" in str(bad.not_reproducible)
    assert {node.step for node in bad.nodes} == {
        "implement", "preflight", "train", "evaluate", "analyze",
    }  # fmt: skip


def test_references_are_the_base_and_popularity(tmp_path: Path) -> None:
    base, popularity = references(finished(tmp_path).context("it01_publish"))
    assert (base.id, base.kind) == ("r1-base", "base")
    assert [node.key for node in base.nodes] == ["it01_baseline"]
    assert (popularity.id, popularity.checkpoint, popularity.nodes) == ("r1-popularity", None, {})


def test_a_rejection_without_a_report_cannot_be_made_again(tmp_path: Path) -> None:
    good, _ = candidates(finished(tmp_path).context("it01_publish"))
    report = {"passed": False, "invariants": []}
    assert replace(good, outcome=REJECTED, preflight=report).not_reproducible is None
    assert "report" in str(replace(good, outcome=REJECTED, preflight=None).not_reproducible)


def test_files_that_changed_since_they_were_committed_are_not_published(tmp_path: Path) -> None:
    run = finished(tmp_path)
    (run.run.folder / "it01/p01/implement/artifacts/patch.diff").write_text("another patch")
    with pytest.raises(EopError, match="is not what was committed"):
        candidates(run.context("it01_publish"))
