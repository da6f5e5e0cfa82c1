"""Chains of roles: outputs, retries, read-only workspaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from toy_target import linear_phase, scripted, task

from eop.core.errors import EopError, ExitCode
from eop.core.locks import exclusive
from eop.patterns import run
from eop.protocol.model import Budget, Output
from eop.runtime.node import Outcome

if TYPE_CHECKING:
    from pathlib import Path

WRITE = {"write": {"output": "report", "text": "fine\n"}}
CRASH = {"when": {"attempt": 1}, "do": [{"crash": 9}]}


def test_the_output_is_the_artifact(tmp_path: Path) -> None:
    result = run(task(tmp_path, linear_phase(), scripted(tmp_path, {"do": [WRITE]})))
    assert result.outcome is Outcome.COMPLETED
    assert result.artifacts == {"report": tmp_path / "node/artifacts/report.md"}
    assert result.artifacts["report"].read_text() == "fine\n"


def test_a_later_role_gets_the_draft_and_has_the_last_word(tmp_path: Path) -> None:
    output = (Output("ideas", "ideas.json"),)
    product = scripted(
        tmp_path,
        {"when": {"role": "writer"}, "do": [{"write": {"output": "ideas", "json": {"n": 4}}}]},
        {
            "when": {"role": "critic"},
            "do": [{"report": {"output": "ideas", "template": "{draft_ideas.n} of {item.slug}"}}],
        },
    )
    phase = linear_phase(nodes={"writer": "scripted", "critic": "scripted"}, outputs=output)
    assert run(task(tmp_path, phase, product)).artifacts["ideas"].read_text() == "4 of genre"


def test_a_failure_is_tried_again_in_a_fresh_workspace(tmp_path: Path) -> None:
    product = scripted(tmp_path, CRASH, {"do": [WRITE]})
    result = run(task(tmp_path, linear_phase(budget=Budget(attempts=2)), product))
    assert result.outcome is Outcome.COMPLETED
    assert result.usage.actions == 1
    folders = sorted(p.name for p in (tmp_path / "node/work/01-investigator").glob("a*"))
    assert folders == ["a01", "a02"]


def test_attempts_are_bounded(tmp_path: Path) -> None:
    result = run(task(tmp_path, linear_phase(), scripted(tmp_path, CRASH, {"do": [WRITE]})))
    assert (result.outcome, result.artifacts) == (Outcome.FAILED, {})
    assert result.reason == "investigator: invalid_output: exit status 9, without a final report"


@pytest.mark.parametrize(
    ("actions", "outcome", "said"),
    [
        ([{"hang": 60}], Outcome.TIMED_OUT, "wall clock"),
        ([{"edit_protected": "toy/x"}, WRITE], Outcome.TAMPERED, "changed by a read-only node"),
        ([{"silent_success": True}], Outcome.FAILED, "report.md: was not left"),
    ],
)
def test_what_is_not_tried_again(
    tmp_path: Path, actions: list[dict[str, Any]], outcome: Outcome, said: str
) -> None:
    phase = linear_phase(budget=Budget(attempts=1, wall_s=5))
    result = run(task(tmp_path, phase, scripted(tmp_path, {"do": actions})))
    assert result.outcome is outcome
    assert said in result.reason


def test_a_timeout_is_not_tried_again(tmp_path: Path) -> None:
    phase = linear_phase(budget=Budget(attempts=3, wall_s=1))
    run(task(tmp_path, phase, scripted(tmp_path, {"do": [{"hang": 60}]})))
    assert len(list((tmp_path / "node/work/01-investigator").glob("a*"))) == 1


def test_an_output_that_breaks_its_schema(tmp_path: Path) -> None:
    phase = linear_phase(outputs=(Output("report", "report.json", schema="report"),))
    product = scripted(tmp_path, {"do": [{"write": {"output": "report", "json": {"n": "x"}}}]})
    schema = {"properties": {"n": {"type": "integer"}}}
    result = run(task(tmp_path, phase, product, schemas={"report": schema}))
    assert result.outcome is Outcome.FAILED
    assert "n: 'x' is not of type 'integer'" in result.reason
    with pytest.raises(EopError, match="unknown schema 'report'"):
        run(task(tmp_path, phase, product))


def test_a_chain_may_deliver_a_patch(tmp_path: Path) -> None:
    edit = {"edit": {"file": "toy/models/new.py", "create": "x = 1\n"}}
    phase = linear_phase(tools=("read", "edit"), outputs=(Output("patch", "p.diff", patch=True),))
    result = run(task(tmp_path, phase, scripted(tmp_path, {"do": [edit]})))
    assert result.outcome is Outcome.COMPLETED
    assert "+x = 1" in result.artifacts["patch"].read_text()


def test_an_unknown_pattern(tmp_path: Path) -> None:
    import dataclasses

    phase = dataclasses.replace(linear_phase(), pattern="tree")
    with pytest.raises(EopError, match="unknown pattern 'tree'"):
        run(task(tmp_path, phase, scripted(tmp_path, {"do": [WRITE]})))


def test_two_processes_do_not_share_a_node(tmp_path: Path) -> None:
    work = task(tmp_path, linear_phase(), scripted(tmp_path, {"do": [WRITE]}))
    with (
        exclusive(work.directory / "work/.lock"),
        pytest.raises(EopError, match="another process") as caught,
    ):
        run(work)
    assert caught.value.exit_code is ExitCode.LOCKED
