"""The review loop on a toy target: real edits, a real check, findings that lead to fixes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from toy_target import (
    CLEAN,
    LEAK,
    SCHEMAS,
    check,
    dual_phase,
    finding,
    scripted,
    task,
)

from eop.agents import patch
from eop.agents.jail import choose
from eop.patterns import run
from eop.protocol.model import Budget
from eop.runtime.node import Outcome

if TYPE_CHECKING:
    from pathlib import Path

SCORE = "toy/models/score.py"
ORIGINAL = "return positive, negative"
LEAKY = {"edit": {"file": SCORE, "find": ORIGINAL, "replace": f"{LEAK}, negative"}}
MEND = {"edit": {"file": SCORE, "find": f"{LEAK}, negative", "replace": CLEAN}}
UNDO = {"edit": {"file": SCORE, "find": f"{LEAK}, negative", "replace": ORIGINAL}}


def step(role: str, *actions: dict[str, Any], **when: Any) -> dict[str, Any]:
    return {"when": {"role": role, **when}, "do": list(actions)}


REVIEW = step("reviewer", {"review": {"from_check": True}})


def review_of(result: Any) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(result.artifacts["review"].read_text())
    return data


def test_a_leak_is_caught_fixed_and_approved(tmp_path: Path) -> None:
    product = scripted(
        tmp_path,
        step("implementer", LEAKY, {"experiment": {"model.layers": 3}}, proposal="genre"),
        REVIEW,
        step("fixer", MEND, round=1),
    )
    jail = choose("auto", trusted=True)
    result = run(task(tmp_path, dual_phase(), product, check=check, jail=jail))
    assert (result.outcome, result.reason) == (Outcome.COMPLETED, "approved")
    review = review_of(result)
    assert [r["verdict"] for r in review["rounds"]] == ["fix", "approved"]
    assert [r["check"]["passed"] for r in review["rounds"]] == [False, True]
    assert "0.25" in review["rounds"][0]["findings"][0]["evidence"]
    assert [(f["id"], f["status"]) for f in review["findings"]] == [("check-I5", "resolved")]
    patch.apply(tmp_path / "snapshot", result.artifacts["patch"].read_bytes(), tmp_path / "out")
    assert CLEAN in (tmp_path / "out" / SCORE).read_text()
    assert not (tmp_path / "out/experiment.yaml").exists()
    assert "layers: 3  # depth" in result.artifacts["experiment"].read_text()
    assert result.usage.actions == 5


def test_the_record_of_a_review_is_what_its_schema_says(tmp_path: Path) -> None:
    product = scripted(tmp_path, step("implementer", LEAKY), REVIEW, step("fixer", MEND))
    record = review_of(run(task(tmp_path, dual_phase(), product, check=check)))
    jsonschema.validate(record, SCHEMAS["review"])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**record, "verdict": "fine"}, SCHEMAS["review"])


@pytest.mark.parametrize("missing", ["family", "suggested_check", "evidence"])
def test_a_finding_that_lacks_something_is_no_finding(tmp_path: Path, missing: str) -> None:
    bare = {
        key: value for key, value in {**finding("F1"), "status": "open"}.items() if key != missing
    }
    review = {"summary": "One.", "findings": [bare]}
    reviewer = step("reviewer", {"write": {"output": "review", "json": review}})
    result = run(
        task(tmp_path, dual_phase(), scripted(tmp_path, step("implementer", LEAKY), reviewer))
    )
    assert result.outcome is Outcome.FAILED
    assert f"'{missing}' is a required property" in result.reason


def test_what_the_reviewer_is_handed(tmp_path: Path) -> None:
    product = scripted(tmp_path, step("implementer", LEAKY), REVIEW, step("fixer", MEND))
    run(task(tmp_path, dual_phase(), product, check=check))
    second = tmp_path / "node/work/06-reviewer/a01"
    assert sorted(p.name for p in (second / "inputs").iterdir()) == [
        "check.json",
        "findings.json",
        "item.json",
        "patch.diff",
    ]
    assert CLEAN in (second / "inputs/patch.diff").read_text()
    assert CLEAN in (second / "workspace" / SCORE).read_text()
    request = json.loads((second / "request.json").read_text())
    assert (request["mode"], request["capabilities"]) == ("read_only", ["read", "shell"])
    assert request["turn"]["round"] == 2
    assert "store" not in request


def test_an_unmended_critical_finding_fails_and_keeps_its_evidence(tmp_path: Path) -> None:
    product = scripted(tmp_path, step("implementer", LEAKY), REVIEW, step("fixer"))
    result = run(task(tmp_path, dual_phase(), product, check=check))
    assert result.outcome is Outcome.FAILED
    assert result.reason.startswith("review not approved: I5 one scoring function")
    assert LEAK in result.artifacts["patch"].read_text()
    assert review_of(result)["verdict"] == "not_approved"


def test_no_reviewer_overrules_the_check(tmp_path: Path) -> None:
    lazy = step("reviewer", {"review": {}})
    product = scripted(tmp_path, step("implementer", LEAKY), lazy, step("fixer"))
    result = run(task(tmp_path, dual_phase(), product, check=check))
    assert (result.outcome, result.reason) == (
        Outcome.FAILED,
        "review not approved: the check failed",
    )


def test_a_major_finding_goes_on_when_the_rounds_are_spent(tmp_path: Path) -> None:
    product = scripted(
        tmp_path,
        step("implementer", LEAKY),
        step("reviewer", {"review": {"findings": [finding("F1")]}}),
    )
    result = run(task(tmp_path, dual_phase(rounds=1), product))
    assert (result.outcome, result.reason) == (Outcome.COMPLETED, "rounds_spent")
    assert review_of(result)["rounds"][0]["check"] is None


def test_an_experiment_alone_is_a_change(tmp_path: Path) -> None:
    product = scripted(
        tmp_path,
        step("implementer", {"experiment": {"model.width": 16}}),
        step("reviewer", {"review": {}}),
    )
    result = run(task(tmp_path, dual_phase(), product, check=check))
    assert result.outcome is Outcome.COMPLETED
    assert result.artifacts["patch"].read_bytes() == b""
    assert "width: 16" in result.artifacts["experiment"].read_text()


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ([step("implementer")], "implementer: no_change"),
        ([step("implementer", LEAKY), REVIEW, step("fixer", UNDO)], "no_change: the fixes undid"),
        ([step("implementer", {"silent_success": True})], "implementer: no_change"),
    ],
)
def test_no_change_fails(tmp_path: Path, steps: list[dict[str, Any]], said: str) -> None:
    result = run(task(tmp_path, dual_phase(), scripted(tmp_path, *steps), check=check))
    assert result.outcome is Outcome.FAILED
    assert result.reason.startswith(said)


@pytest.mark.parametrize("role", ["implementer", "fixer"])
def test_a_protected_path_is_tampering(tmp_path: Path, role: str) -> None:
    evil = {"edit_protected": "toy/evaluation/judge.py"}
    honest = {"implementer": [LEAKY], "fixer": [MEND]}
    steps = [step(r, *actions, *([evil] if r == role else [])) for r, actions in honest.items()]
    product = scripted(tmp_path, *steps, REVIEW)
    result = run(task(tmp_path, dual_phase(), product, check=check))
    assert result.outcome is Outcome.TAMPERED
    assert "toy/evaluation/judge.py: protected" in result.reason
    assert "judge.py" in result.artifacts["patch"].read_text()


def test_a_reviewer_that_edits_is_tampering(tmp_path: Path) -> None:
    reviewer = step("reviewer", {"edit_protected": SCORE}, {"review": {}})
    product = scripted(tmp_path, step("implementer", LEAKY), reviewer)
    result = run(task(tmp_path, dual_phase(), product))
    assert result.outcome is Outcome.TAMPERED
    assert f"{SCORE}: changed by a read-only node" in result.reason


def test_patches_are_cumulative_from_the_pinned_snapshot(tmp_path: Path) -> None:
    """The base holds the champion's change already; what is delivered holds both."""
    product = scripted(
        tmp_path,
        step("implementer", {"edit": {"file": "toy/models/new.py", "create": "x = 1\n"}}),
        step("reviewer", {"review": {}}),
    )
    work = task(tmp_path, dual_phase(), product)
    (work.base / "toy/models/champion.py").write_text("c = 1\n")
    text = run(work).artifacts["patch"].read_text()
    assert "toy/models/champion.py" in text
    assert "toy/models/new.py" in text
    handed = (tmp_path / "node/work/02-reviewer/a01/inputs/patch.diff").read_text()
    assert "champion.py" not in handed


def test_the_action_budget_spans_all_nodes(tmp_path: Path) -> None:
    product = scripted(tmp_path, step("implementer", LEAKY), REVIEW, step("fixer", MEND))
    phase = dual_phase(budget=Budget(actions=3))
    result = run(task(tmp_path, phase, product, check=check))
    assert result.outcome is Outcome.BUDGET_EXHAUSTED
    assert "actions is spent" in result.reason
    assert result.usage.actions == 3
    assert CLEAN in result.artifacts["patch"].read_text()
