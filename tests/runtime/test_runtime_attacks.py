"""What can be done to a finished run is found, and the finding names the place."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from research_run import Run

from eop.core.files import read_json, write_json
from eop.runtime.events import GENESIS, Event, encode
from eop.runtime.lifecycle import outcome
from eop.runtime.node import Instance
from eop.runtime.trace import Trace
from eop.runtime.verify import verify

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NODE = "runs/r1/it01/p01/implement"


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of one iteration that a person ended; outcome files as its jobs leave them."""
    run = Run(tmp_path_factory.mktemp("finished"))
    run.to_branches()
    run.branch("p01")
    run.branch("p02")
    run.do("it01_promote")
    run.touch("rejected", "enough")
    state = run.trace.state()
    assert state.ended == "rejected"
    for key in (*state.nodes, *state.gates):
        instance = Instance.parse(key)
        write_json(run.folder / instance.directory / "outcome.json", outcome(state, instance))
    return run.root


@pytest.fixture(params=[False, True], ids=["single files", "packed"])
def run(request: pytest.FixtureRequest, finished_run: Path, tmp_path: Path) -> Run:
    shutil.copytree(finished_run, tmp_path / "project", symlinks=True)
    run = Run(tmp_path / "project")
    if request.param:
        run.trace.compact()
    return run


def chain(run: Run, events: list[Event]) -> None:
    """Write the trace anew with these events: numbers, predecessors and digests all fit."""
    packed = any(run.trace.directory.glob("*.jsonl"))
    for path in list(run.trace.directory.iterdir()):
        path.unlink()
    before, contents = GENESIS, []
    for seq, event in enumerate(events, start=1):
        chained = replace(event, seq=seq, prev=before)
        contents.append(encode(chained))
        before = chained.digest
    put(run, contents, packed=packed)


def put(run: Run, contents: list[bytes], *, packed: bool) -> None:
    folder = run.trace.directory
    if packed:
        whole = b"".join(content + b"\n" for content in contents)
        (folder / f"{1:08d}-{len(contents):08d}.jsonl").write_bytes(whole)
        return
    for seq, content in enumerate(contents, start=1):
        (folder / f"{seq:08d}.json").write_bytes(content)


def number_of(events: list[Event], kind: str, **data: object) -> int:
    """Index of the first event of this type that carries this data."""
    return next(
        at
        for at, event in enumerate(events)
        if event.type == kind and data.items() <= event.data.items()
    )


def changed(event: Event, **data: Any) -> Event:
    return replace(event, data={**event.data, **data})


def removed(at: int) -> Callable[[list[Event]], list[Event]]:
    return lambda events: [event for n, event in enumerate(events) if n != at % len(events)]


def edited_usage(events: list[Event]) -> list[Event]:
    at = number_of(events, "node_left", node="it01_p01_implement")
    usage = {**events[at].data["usage"], "actions": 1}
    return [*events[:at], changed(events[at], usage=usage), *events[at + 1 :]]


def overspent(events: list[Event]) -> list[Event]:
    """Every agent has used up all that the run has, says the trace."""
    at = number_of(events, "node_left", node="it01_investigate")
    usage = {**events[at].data["usage"], "wall_s": 36000.0}
    return [*events[:at], changed(events[at], usage=usage), *events[at + 1 :]]


def overspent_at_the_end(events: list[Event]) -> list[Event]:
    at = number_of(events, "node_left", node="it01_promote")
    usage = {**events[at].data["usage"], "wall_s": 36000.0}
    return [*events[:at], changed(events[at], usage=usage), *events[at + 1 :]]


def gate_opened_late(events: list[Event]) -> list[Event]:
    """The approval stands behind the entry of what it guards."""
    approved = number_of(events, "gate_approved", gate="it01_approve")
    entered = number_of(events, "branches_opened")
    moved = [event for n, event in enumerate(events) if n != approved]
    return [*moved[:entered], events[approved], *moved[entered:]]


def early(events: list[Event]) -> list[Event]:
    """Train enters before implement has."""
    train = number_of(events, "node_entered", node="it01_p01_train")
    implement = number_of(events, "node_entered", node="it01_p01_implement")
    moved = [event for n, event in enumerate(events) if n != train]
    return [*moved[:implement], events[train], *moved[implement:]]


def inserted(events: list[Event]) -> list[Event]:
    at = number_of(events, "node_entered", node="it01_p01_implement")
    dead = replace(
        events[at],
        type="node_abandoned",
        data={"node": "it01_p01_implement", "attempt": 1, "reason": "its process died"},
    )
    return [*events[: at + 1], dead, *events[at + 1 :]]


def swapped(events: list[Event]) -> list[Event]:
    return [*events[:3], events[4], events[3], *events[5:]]


REWRITTEN: dict[str, tuple[Callable[[list[Event]], list[Event]], str]] = {
    "first removed": (removed(0), "event 1: a trace begins with run_started|broken at 00000001"),
    "middle removed": (removed(9), "trace is broken at 0000"),
    "last removed": (removed(-1), "the trace ends at event .*, and head.json knows event"),
    "inserted": (inserted, "attempt 1 of it01_p01_implement is not open"),
    "reordered": (swapped, "trace is broken at 0000"),
    "usage edited": (edited_usage, "it01/p01/implement/outcome.json|not the one that head.json"),
    "gate closed": (gate_opened_late, "no fan-out may open its branches now"),
    "before its needs": (early, "it01_p01_train may not be entered: it01_p01_implement has not"),
    "overspent": (overspent, "may not be entered: the run's budget of 36000 s wall"),
    "overspent at last": (
        overspent_at_the_end,
        "spent 36.* wall, the run's budget is 36000",
    ),
}


def findings(run: Run) -> str:
    return "\n".join(verify(run.root, run.name))


def test_an_honest_run_holds(run: Run) -> None:
    assert findings(run) == ""


@pytest.mark.parametrize("attack", REWRITTEN)
def test_a_trace_written_anew_is_found(run: Run, attack: str) -> None:
    """All digests are recomputed: the chain itself is perfect."""
    change, message = REWRITTEN[attack]
    chain(run, change(list(run.trace.events())))
    found = findings(run)
    assert re.search(message, found), found


@pytest.mark.parametrize("at", [0, 9, -1])
@pytest.mark.parametrize("deed", ["removed", "edited", "doubled"])
def test_a_single_change_is_found(run: Run, at: int, deed: str) -> None:
    """Nothing else is touched."""
    packed = any(run.trace.directory.glob("*.jsonl"))
    contents = [encode(event) for event in run.trace.events()]
    at %= len(contents)
    if deed == "removed" and not packed:
        (run.trace.directory / f"{at + 1:08d}.json").unlink()
    else:
        changed_to = {
            "removed": [],
            "edited": [contents[at].replace(b'"host":"', b'"host":"x')],
            "doubled": [contents[at]] * 2,
        }[deed]
        for path in list(run.trace.directory.iterdir()):
            path.unlink()
        put(run, [*contents[:at], *changed_to, *contents[at + 1 :]], packed=packed)
    found = findings(run)
    place = f"{at + 1 + (deed == 'doubled'):08d}.json" if not packed else "event "
    last = deed == "removed" and at == len(contents) - 1
    assert ("head.json" if last else place) in found, found


def write_over(path: str, text: str) -> Callable[[Run], None]:
    def write(run: Run) -> None:
        (run.root / path).write_text(text)

    return write


def lower_a_limit(run: Run) -> None:
    plan = read_json(run.folder / "plan.json")
    plan["gates"][1]["after"] = []
    write_json(run.folder / "plan.json", plan)


def lie_in_an_outcome(run: Run) -> None:
    path = run.root / NODE / "outcome.json"
    write_json(path, {**read_json(path), "reason": "all went well"})


def take_a_sentinel(run: Run) -> None:
    next(run.gates.glob("it01-approve.*.approved")).unlink()


def forget_a_gate(run: Run) -> None:
    """Cut the trace where a gate was asked, with all outcomes that tell of it."""
    events = list(run.trace.events())
    at = number_of(events, "gate_requested", gate="it01_evolve")
    chain(run, events[:at])
    (run.folder / "head.json").unlink()
    (run.folder / "it01/evolve/outcome.json").unlink()


def forget_a_branch(run: Run) -> None:
    events = list(run.trace.events())
    at = number_of(events, "node_entered", node="it01_p02_implement")
    chain(run, events[:at])
    write_json(
        run.folder / "head.json",
        {"seq": at, "digest": Trace(run.trace.directory, run.plan).state().head},
    )
    for path in run.folder.glob("it01/**/outcome.json"):
        path.unlink()


def remove(path: str) -> Callable[[Run], None]:
    return lambda run: (run.root / path).unlink()


TEXT = f"{NODE}/artifacts/implement.md"
MORE = f"{NODE}/artifacts/more.md"
BESIDE: dict[str, tuple[Callable[[Run], None], str]] = {
    "artifact changed": (write_over(TEXT, "x"), f"is not what was committed: {TEXT}"),
    "artifact removed": (remove(TEXT), f"is missing: {TEXT}"),
    "artifact added": (write_over(MORE, "x"), f"{MORE}: no artifact that the trace knows"),
    "plan edited": (lower_a_limit, "the run was started with plan"),
    "outcome edited": (lie_in_an_outcome, "it01/p01/implement/outcome.json does not say"),
    "sentinel removed": (take_a_sentinel, "gate it01_approve is approved, and "),
    "head removed": (remove("runs/r1/head.json"), "head.json is missing"),
    "head no JSON": (write_over("runs/r1/head.json", "{"), "head.json: not valid JSON"),
    "head without number": (write_over("runs/r1/head.json", "[]"), "head.json does not say"),
    "gate forgotten": (forget_a_gate, r"it01-evolve\..*\.request\.md: the trace knows no such"),
    "branch forgotten": (forget_a_branch, "it01/p02/implement/artifacts: the trace knows no"),
}


@pytest.mark.parametrize("attack", BESIDE)
def test_what_is_done_beside_the_trace_is_found(run: Run, attack: str) -> None:
    deed, message = BESIDE[attack]
    deed(run)
    found = findings(run)
    assert re.search(message, found), found
