"""A job begins with the saved state, and with nothing that is not the trace's own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from research_run import Run
from test_runtime_compact import two_turns

from eop.core.errors import EopError
from eop.protocol.model import Amount
from eop.runtime import saved
from eop.runtime.lifecycle import enter
from eop.runtime.node import Instance
from eop.runtime.reduce import reduce
from eop.runtime.state import NodeState, evolve
from eop.runtime.trace import Trace

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def run(tmp_path: Path) -> Run:
    run = Run(tmp_path)
    run.to_branches()
    run.trace.save()
    return run


def resumed(run: Run) -> Trace:
    return Trace.resumed(run.trace.directory, run.plan)


def reads_all(trace: Trace) -> bool:
    return trace._skipped == 0


def test_a_job_begins_with_it_and_goes_on(run: Run) -> None:
    run.do("it01_p01_implement")
    trace = resumed(run)
    assert not reads_all(trace)
    assert trace.state() == run.trace.state()
    entered = enter(trace, run.plan, Instance.parse("it01_p02_implement"))
    assert entered.kind == "run"
    assert Trace(run.trace.directory, run.plan).state() == trace.state()
    assert trace.events() == run.trace.events()


def test_nothing_changes_without_one(run: Run) -> None:
    (run.folder / saved.STATE_FILE).unlink()
    assert reads_all(resumed(run))
    assert resumed(run).state() == run.trace.state()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda content: content[:-1],
        lambda content: b"",
        lambda content: content.replace(b"state/2", b"state/1"),
        lambda content: content.replace(b"completed", b"abandoned"),
        lambda content: content.partition(b"\n")[2],
    ],
)
def test_a_file_that_is_not_whole_is_not_used(run: Run, spoil) -> None:  # type: ignore[no-untyped-def]
    path = run.folder / saved.STATE_FILE
    before = path.read_bytes()
    path.write_bytes(spoil(before))
    assert path.read_bytes() != before
    assert reads_all(resumed(run))
    assert resumed(run).state() == run.trace.state()


def test_the_state_of_another_trace_or_another_plan_is_not_used(run: Run) -> None:
    state = run.trace.state()
    for other in (
        evolve(state, {"head": "1" * 64}),
        evolve(state, {"seq": state.seq - 1}),
        evolve(state, {"seq": state.seq + 1}),
        evolve(state, {"plan": "1" * 64}),
    ):
        saved.save(run.folder, other)
        assert reads_all(resumed(run))
        assert resumed(run).state() == state


def test_a_trace_that_was_put_back_to_an_earlier_day_is_read_as_it_is(run: Run) -> None:
    last = run.trace.state().seq
    (run.trace.directory / f"{last:08d}.json").unlink()
    assert reads_all(resumed(run))
    assert resumed(run).state().seq == last - 1


def test_after_packing_it_is_used_at_the_end_of_a_pack_only(tmp_path: Path) -> None:
    run = two_turns(tmp_path)
    run.trace.compact()
    packs = sorted(run.trace.directory.glob("*.jsonl"))
    state = None
    for event in run.trace.events():
        state = reduce(run.plan, state, event)
        saved.save(run.folder, state)
        at_an_end = any(path.stem.endswith(f"-{event.seq:08d}") for path in packs)
        alone = not any(int(path.stem[:8]) <= event.seq <= int(path.stem[9:]) for path in packs)
        assert reads_all(resumed(run)) != (at_an_end or alone)
        assert resumed(run).state() == run.trace.state()


def test_a_forged_state_lets_a_job_in_and_the_next_reader_of_the_trace_finds_it(run: Run) -> None:
    state = run.trace.state()
    done = NodeState("completed", 1, final=True)
    forged = evolve(state, {"nodes": state.nodes.set("it01_p01_implement", done)})
    saved.save(run.folder, forged)
    assert enter(resumed(run), run.plan, Instance.parse("it01_p01_train")).kind == "run"
    with pytest.raises(EopError, match="it01_p01_implement has not left yet"):
        Trace(run.trace.directory, run.plan).state()


def test_amounts_and_empty_fields_come_back(run: Run) -> None:
    state = evolve(run.trace.state(), {"spent": Amount(1, 0.1 + 0.2, 2, 3), "ended": "failed"})
    again = saved.decode(saved.encode(state))
    assert again == state
    assert again != replace(state, ended=None)
