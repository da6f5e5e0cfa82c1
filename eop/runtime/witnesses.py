"""What lies beside a trace and tells of events that it no longer holds.

Nothing follows the last event of a chain, so a trace that was cut at its end, or written anew from
some event on, is sound in itself. Found it is by what the events have left elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eop.core.errors import EopError
from eop.core.files import read_json, write_json
from eop.runtime.gates import REQUEST, gate_file
from eop.runtime.node import Instance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from eop.runtime.events import Event
    from eop.runtime.state import State

HEAD = "head.json"
_SCHEMA = "head/1"


def remember(folder: Path, state: State) -> None:
    """Note in ``folder``, that of the run, which event was the last, unless a later one was noted.

    Two that note at once may leave the earlier of their events: it is as true.
    """
    path = folder / HEAD
    if not path.is_file() or read_json(path)["seq"] < state.seq:
        write_json(path, {"schema": _SCHEMA, "seq": state.seq, "digest": state.head})


def cut(folder: Path, read: Callable[[], Sequence[Event]]) -> str | None:
    """Why these are not all the events, or not those, that the run has had; ``None`` if they are.

    Judged by what ``remember`` noted alone. That is read first, and the events by ``read`` then: a
    run that goes on meanwhile has more of them, never fewer.
    """
    path = folder / HEAD
    if not path.is_file():
        events = read()
        worked = any(event.type == "node_entered" for event in events)
        return f"{HEAD} is missing: nothing says where the trace ended" if worked else None
    try:
        noted = read_json(path)
        seq, digest = int(noted["seq"]), str(noted["digest"])
    except EopError as error:
        return f"{HEAD}: {error.message}"
    except (KeyError, TypeError, ValueError):
        return f"{HEAD} does not say which event was the last"
    events = read()
    if not 1 <= seq <= len(events):
        return f"the trace ends at event {len(events)}, and {HEAD} knows event {seq}"
    if events[seq - 1].digest != digest:
        return f"event {seq} is not the one that {HEAD} knows: the trace was written anew"
    return None


def strangers(root: Path, state: State, events: Sequence[Event]) -> Iterator[str]:
    """Files of the run that stand for events which the trace does not hold, one line each.

    Pages of requests that were never made, work of nodes that never entered, and files among the
    artifacts of a completed node that it did not commit.
    """
    yield from _requests(root / "gates", state.run, events)
    folder = root / "runs" / state.run
    known = {Instance.parse(key).directory: key for key in state.nodes}
    committed = {a.path for node in state.nodes.values() for a in node.artifacts}
    for path in sorted([*folder.glob("it*/*/*"), *folder.glob("it*/p[0-9][0-9]/*/*")]):
        if path.name not in ("artifacts", "work") or not any(path.iterdir()):
            continue
        where = path.parent.relative_to(folder).as_posix()
        node = state.nodes.get(known.get(where, ""))
        if node is None or node.attempt == 0:
            yield f"{where}/{path.name}: the trace knows no attempt of this node"
        elif node.completed and path.name == "artifacts":
            yield from _uncommitted(root, path, committed)


def _requests(gates: Path, run: str, events: Sequence[Event]) -> Iterator[str]:
    asked = {
        gate_file(gates, run, Instance.parse(e.data["gate"]), e.data["digest"], REQUEST).name
        for e in events
        if e.type == "gate_requested"
    }
    for path in sorted((gates / run).glob(f"*.{REQUEST}")):
        if path.name not in asked:
            yield f"{path.name}: the trace knows no such request"


def _uncommitted(root: Path, folder: Path, committed: set[str]) -> Iterator[str]:
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(root).as_posix()
        if not path.is_dir() and name not in committed:
            yield f"{name}: no artifact that the trace knows"
