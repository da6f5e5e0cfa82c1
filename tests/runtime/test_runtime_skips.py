"""What a guard, or an optional phase, keeps from running holds nothing else up."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from judged_run import WHEN, chain, judge, refuse, says, skip, status
from research_run import Run, agent

from eop.protocol.model import FanOut, Gate, Join, Loop, OnReject, Output, Phase
from eop.runtime.node import Outcome, Usage
from eop.runtime.state import GateState

if TYPE_CHECKING:
    from pathlib import Path


def test_others_go_on_without_an_optional_phase(tmp_path: Path) -> None:
    act = agent("act", 20, needs=("judge",), when=WHEN, optional=True)
    run = Run(tmp_path, chain(judge(), act, agent("tell", 30, needs=("act",))))
    run.do("it01_judge", text=says(go=False))
    skip(run, "it01_act")
    run.do("it01_tell")
    assert run.advance().ended == "completed"


def test_what_is_skipped_has_spent_nothing(tmp_path: Path) -> None:
    act = agent("act", 20, needs=("judge",), when=WHEN, optional=True)
    run = Run(tmp_path, chain(judge(), act))
    run.do("it01_judge", text=says(go=False))
    skip(run, "it01_act")
    node = run.trace.state().nodes["it01_act"]
    assert (node.attempt, node.usage) == (0, Usage())


def test_a_run_does_not_fail_with_an_optional_phase(tmp_path: Path) -> None:
    gate = Gate("ask", 40, ("tell", "act"), ("tell_text",), OnReject())
    act = agent("act", 20, needs=("judge",), optional=True)
    tell = agent("tell", 30, needs=("act",), when="verdict.go")
    run = Run(tmp_path, chain(judge(), act, tell, gates=(gate,)))
    run.do("it01_judge", text=says())
    run.do("it01_act", Outcome.FAILED)
    run.do("it01_tell")
    assert [view.instance.step for view in run.advance().waiting] == ["ask"]
    assert run.touch().ended == "completed"


def test_what_reads_an_artifact_that_was_never_committed_is_unknown(tmp_path: Path) -> None:
    """Not false: its negation does not let in either."""
    first = agent("first", 5, when="least > 9", outputs=(Output("verdict", "verdict.json"),))
    other = agent("other", 6, needs=("first",), optional=True)
    late = agent("late", 7, needs=("other",), when="not verdict.go")
    run = Run(tmp_path, chain(first, other, late))
    skip(run, "it01_first", "it01_other", "it01_late")
    why = "its guard is unknown: 'verdict.go' is not known: it01_first ended as skipped"
    assert status(run, "it01_late") == ("skipped", why)
    assert run.advance().ended == "completed"


def test_a_gate_with_nothing_to_ask_is_skipped(tmp_path: Path) -> None:
    gate = Gate("ask", 25, ("act",), ("act_text",), OnReject())
    act = agent("act", 20, needs=("judge",), when=WHEN)
    tell = agent("tell", 30, needs=("ask",))
    run = Run(tmp_path, chain(judge(), act, tell, gates=(gate,)))
    run.do("it01_judge", text=says(go=False))
    assert "may not be skipped" in refuse(run, "gate_skipped", gate="it01_ask", reason="x")
    skip(run, "it01_act")
    position = run.advance()
    assert position.waiting == ()
    why = "it01_act ended as skipped"
    assert position.state.gates["it01_ask"] == GateState("skipped", "", reason=why)
    assert [node.key for node in position.frontier.instances][-2:] == ["it01_ask", "it01_tell"]
    skip(run, "it01_tell")
    assert status(run, "it01_tell")[1] == "gate it01_ask was not asked"
    assert run.advance().ended == "completed"


def test_after_a_skipped_gate_the_next_one_is_asked(tmp_path: Path) -> None:
    asks = (
        Gate("ask", 25, ("act",), ("act_text",), OnReject()),
        Gate("look", 35, ("tell",), ("tell_text",), OnReject()),
    )
    act = agent("act", 20, needs=("judge",), when=WHEN, optional=True)
    run = Run(tmp_path, chain(judge(), act, agent("tell", 30, needs=("act",)), gates=asks))
    run.do("it01_judge", text=says(go=False))
    skip(run, "it01_act")
    run.advance()
    run.do("it01_tell")
    assert [view.instance.step for view in run.advance().waiting] == ["look"]
    assert list(run.trace.state().gates) == ["it01_ask", "it01_look"]
    assert run.touch().ended == "completed"


@pytest.mark.parametrize("turns", [1, 2])
def test_a_fan_out_whose_list_is_there_and_whose_head_a_guard_keeps_away(
    tmp_path: Path, turns: int
) -> None:
    act = agent("act", 30, needs=("judge",), when=WHEN)
    sketch = replace(
        agent("sketch", 40, needs=("act",), branch="draft"), fan_out=FanOut("draft", "items", 3)
    )
    listing = agent("listing", 20, needs=("judge",), outputs=(Output("items", "items.json"),))
    gather = Phase("gather", 50, "", "", join=Join("sketch", 0), function="promote")
    loop = Loop("again", 60, ("gather",), "sketch", turns)
    run = Run(tmp_path, chain(judge(), listing, act, sketch, gather, loop=loop))
    run.do("it01_judge", text=says(go=False))
    run.do("it01_listing", text='[{"id": "a", "title": "A"}]')
    skip(run, "it01_act")
    for iteration in range(1, turns + 1):
        assert run.advance().ended is None
        skip(run, f"it{iteration:02d}_gather")
        why = "no branches are opened: it01_act ended as skipped"
        assert status(run, f"it{iteration:02d}_gather") == ("skipped", why)
    assert run.advance().ended == "completed"


def test_a_list_of_the_first_iteration_that_was_kept_away_stays_away(tmp_path: Path) -> None:
    listing = agent("listing", 20, needs=("judge",), when=WHEN)
    listing = replace(listing, outputs=(Output("items", "items.json"),))
    act = agent("act", 30, optional=True)
    sketch = agent("sketch", 40, needs=("act",), branch="draft")
    sketch = replace(sketch, fan_out=FanOut("draft", "items", 3))
    gather = Phase("gather", 50, "", "", join=Join("sketch", 0), function="promote")
    loop = Loop("again", 60, ("gather",), "act", 2)
    run = Run(tmp_path, chain(judge(), listing, act, sketch, gather, loop=loop))
    run.do("it01_judge", text=says(go=False))
    skip(run, "it01_listing")
    for iteration in (1, 2):
        run.do(f"it{iteration:02d}_act")
        skip(run, f"it{iteration:02d}_gather")
        run.advance()
    assert status(run, "it02_gather")[1] == "no branches are opened: it01_listing ended as skipped"
    assert run.trace.state().ended == "completed"


def test_a_later_fan_out_over_a_list_that_a_guard_kept_away_holds_nothing_up(
    tmp_path: Path,
) -> None:
    """It needs an optional phase only, which has left, and its list will never be there."""
    listing = agent("listing", 20, needs=("judge",), when=WHEN)
    listing = replace(listing, outputs=(Output("items", "items.json"),))
    act = agent("act", 30, needs=("listing",), optional=True)
    sketch = agent("sketch", 40, needs=("act",), branch="draft")
    sketch = replace(sketch, fan_out=FanOut("draft", "items", 3))
    gather = Phase("gather", 50, "", "", join=Join("sketch", 0), function="promote")
    run = Run(tmp_path, chain(judge(), listing, act, sketch, gather))
    run.do("it01_judge", text=says(go=False))
    skip(run, "it01_listing", "it01_act", "it01_gather")
    why = "no branches are opened: it01_listing ended as skipped"
    assert status(run, "it01_gather") == ("skipped", why)
    assert run.advance().ended == "completed"
