"""verify: an honest run has no findings, and every planted fault is one."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from research_run import Run, research

from eop.core.files import read_json, write_json
from eop.protocol.model import Budget
from eop.runtime.events import GENESIS, Event, encode
from eop.runtime.lifecycle import outcome
from eop.runtime.node import Instance, Outcome, Usage
from eop.runtime.trace import Trace
from eop.runtime.verify import verify
from eop.runtime.witnesses import remember

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run in the middle of its branches, with the outcome files that its jobs leave."""
    run = Run(tmp_path)
    run.to_branches()
    run.do("it01_p01_implement")
    write_outcomes(run)
    return run


def write_outcomes(run: Run) -> None:
    state = run.trace.state()
    for key in (*state.nodes, *state.gates):
        instance = Instance.parse(key)
        write_json(run.folder / instance.directory / "outcome.json", outcome(state, instance))


def rewrite(run: Run, events: list[Event]) -> None:
    """Replace the trace by a perfect chain of these events, past the state machine."""
    for path in run.trace.directory.iterdir():
        path.unlink()
    before = GENESIS
    for seq, event in enumerate(events, start=1):
        chained = replace(event, seq=seq, prev=before)
        (run.trace.directory / f"{seq:08d}.json").write_bytes(encode(chained))
        before = chained.digest


def note_anew(run: Run) -> None:
    """Let ``head.json`` know the trace as it is now."""
    (run.folder / "head.json").unlink()
    remember(run.folder, Trace(run.trace.directory, run.plan).state())


def findings(run: Run) -> list[str]:
    return verify(run.root, run.name)


def test_an_honest_run_has_none(run: Run) -> None:
    assert findings(run) == []


def test_a_changed_artifact(run: Run) -> None:
    (run.folder / "it01/propose/artifacts/proposals.json").write_text("[]")
    assert findings(run) == [
        "it01_propose: artifact 'proposals' is not what was committed: "
        "runs/r1/it01/propose/artifacts/proposals.json"
    ]


def test_a_missing_artifact(run: Run) -> None:
    (run.folder / "it01/p01/implement/artifacts/implement.md").unlink()
    assert "is missing" in findings(run)[0]


def test_an_artifact_replaced_by_a_link(run: Run) -> None:
    path = run.folder / "it01/propose/artifacts/proposals.json"
    path.rename(run.root / "copy.json")
    path.symlink_to(run.root / "copy.json")
    assert "is not what was committed" in findings(run)[0]


def test_another_plan(run: Run) -> None:
    write_json(run.folder / "plan.json", research(version="2").to_json())
    assert "not this one" in findings(run)[0]
    (run.folder / "plan.json").write_text('{"name": "research"}')
    assert "is not a plan" in findings(run)[0]
    (run.folder / "plan.json").unlink()
    assert findings(run) == ["plan.json: file is missing"]


def test_a_plan_that_is_no_object(run: Run) -> None:
    (run.folder / "plan.json").write_text("[]")
    assert "is not a plan" in findings(run)[0]


@pytest.mark.parametrize("number", [1, 2, 5])
def test_a_removed_event(run: Run, number: int) -> None:
    (run.trace.directory / f"{number:08d}.json").unlink()
    assert findings(run)[0].startswith(f"trace is broken at {number:08d}.json")


def test_a_removed_tail(run: Run) -> None:
    last = max(run.trace.directory.glob("*.json"))
    last.unlink()
    assert findings(run) == ["it01/p01/implement/outcome.json does not say what the trace says"]


def test_a_trace_that_ends_before_what_was_noted(run: Run) -> None:
    run.advance()
    last = max(run.trace.directory.glob("*.json"))
    last.unlink()
    number = int(last.stem)
    assert (
        findings(run)[0]
        == f"the trace ends at event {number - 1}, and head.json knows event {number}"
    )


def test_a_trace_that_was_written_anew_together_with_all_that_knows_of_it(run: Run) -> None:
    """Only a digest that was noted elsewhere tells: here, of somebody who waited a day less."""
    run.advance()
    events = run.trace.events()
    head = events[-1].digest
    assert verify(run.root, run.name, head) == []
    assert verify(run.root, run.name, events[3].digest[:12]) == [], "an earlier head holds as well"
    rewrite(run, [replace(event, time="2026-01-01T00:00:00.000+00:00") for event in events])
    note_anew(run)
    assert findings(run) == []
    assert verify(run.root, run.name, head) == [
        f"no event has the digest {head}: the trace was cut or written anew since that"
    ]


def test_branches_that_the_list_does_not_name(run: Run) -> None:
    events = list(run.trace.events())
    at = next(i for i, event in enumerate(events) if event.type == "branches_opened")
    opened = events[at].data
    titles = {**opened["branches"], "p02": "Something else"}
    events[at] = replace(events[at], data={**opened, "branches": titles})
    rewrite(run, events)
    note_anew(run)
    assert findings(run) == [
        f"event {at + 1}: the branches of 'proposal' are not those of "
        "runs/r1/it01/propose/artifacts/proposals.json"
    ]


def test_an_edited_event(run: Run) -> None:
    path = run.trace.directory / "00000003.json"
    value = json.loads(path.read_bytes())
    value["data"]["usage"]["actions"] = 1
    path.chmod(0o644)
    path.write_text(json.dumps(value))
    assert "it was edited" in findings(run)[0]


def test_a_gate_that_was_not_open(run: Run) -> None:
    rewrite(run, [e for e in run.trace.events() if not e.type.startswith("gate_")])
    assert "gate it01_confirm is closed" in findings(run)[0]


def test_events_in_another_order(run: Run) -> None:
    events = list(run.trace.events())
    events[1], events[2] = events[2], events[1]
    rewrite(run, events)
    assert "is not open" in findings(run)[0]


def test_an_event_that_was_put_in(run: Run) -> None:
    events = list(run.trace.events())
    rewrite(run, [*events, replace(events[-1], type="loop_continued", data={"iteration": 2})])
    assert "may not begin" in findings(run)[0]


def test_an_approval_that_nobody_gave(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.do("it01_investigate")
    view = run.advance().waiting[0]
    answer = {"gate": "it01_confirm", "digest": view.digest, "by": "a person", "reason": ""}
    run.trace.append("gate_approved", answer)
    assert findings(run) == [
        f"gate it01_confirm is approved, and its sentinel is missing: {view.approve.name}"
    ]


def test_an_overspent_budget(tmp_path: Path) -> None:
    run = Run(tmp_path, research(budget=Budget(actions=10)))
    run.advance()
    run.do("it01_investigate", usage=Usage(14, 1.0))
    assert findings(run) == ["spent 14 actions, the run's budget is 10"]


@pytest.mark.parametrize(("took", "finding"), [(72.5, False), (200.0, True)])
def test_a_node_that_is_stopped_takes_a_moment_to_end(
    tmp_path: Path, took: float, finding: bool
) -> None:
    """Its time was all that the run had, and it was stopped when that was over."""
    run = Run(tmp_path, research(budget=Budget(wall_s=60)))
    run.advance()
    run.do("it01_investigate", Outcome.TIMED_OUT, Usage(3, took))
    expected = [f"spent {took:g} s wall, the run's budget is 60 s"] if finding else []
    assert findings(run) == expected


def test_a_node_entered_beyond_the_budget(tmp_path: Path) -> None:
    first = research().phase("investigate")
    phases = (first, replace(first, id="survey", line=11))
    run = Run(tmp_path, research(phases=phases, gates=(), loop=None))
    run.do("it01_investigate")
    run.do("it01_survey")
    poor = replace(run.plan, budget=Budget(actions=12))
    write_json(run.folder / "plan.json", poor.to_json())
    started, *rest = run.trace.events()
    rewrite(run, [replace(started, data={**started.data, "plan": poor.digest}), *rest])
    assert "it01_survey may not be entered: the run's budget of 12 actions" in findings(run)[0]


def test_an_outcome_file_that_lies(run: Run) -> None:
    path = run.folder / "it01/investigate/outcome.json"
    write_json(path, {**read_json(path), "outcome": "failed"})
    assert findings(run) == ["it01/investigate/outcome.json does not say what the trace says"]
    path.write_text("{")
    assert "not valid JSON" in findings(run)[0]


@pytest.mark.parametrize("put", [Path.mkdir, os.mkfifo, lambda path: path.write_bytes(b"\xff")])
def test_what_is_no_outcome_file_is_not_waited_for(run: Run, put: Callable[[Path], object]) -> None:
    path = run.folder / "it01/investigate/outcome.json"
    path.unlink()
    put(path)
    [finding] = findings(run)
    assert finding.startswith("it01/investigate/outcome.json: ")


@pytest.mark.parametrize("put", [Path.mkdir, os.mkfifo])
def test_a_pack_that_is_no_file(run: Run, put: Callable[[Path], object]) -> None:
    put(run.trace.directory / "00000001-00000004.jsonl")
    assert findings(run) == ["trace is broken at 00000001-00000004.jsonl: it is not a regular file"]


def test_an_outcome_file_of_nobody(run: Run) -> None:
    write_json(run.folder / "it01/p02/train/outcome.json", {})
    assert findings(run) == ["it01/p02/train/outcome.json: the trace knows no such node"]


def test_workspaces_are_not_read(run: Run) -> None:
    write_json(run.folder / "it01/propose/work/a1/outcome.json", {})
    write_json(run.folder / "it01/propose/work/outcome.json", {})
    assert findings(run) == []


def test_a_trace_of_another_run(run: Run) -> None:
    run.folder.rename(run.root / "runs/other")
    assert verify(run.root, "other")[0] == "the trace is that of run 'r1'"
