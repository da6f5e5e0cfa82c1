"""A run's state on the disk, so that a job need not fold a long history to do one node.

It is an aid, never the truth. Only jobs begin with it; who plans, shows or verifies a run folds the
trace itself, and so judges anew every event that a job has added. What is not the state at an event
that the trace holds is not used.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

import orjson

from eop.core.files import write_bytes
from eop.protocol.model import Amount
from eop.runtime.node import Artifact, Outcome, Usage
from eop.runtime.ordered import Ordered
from eop.runtime.state import GateState, Halt, NodeState, State

if TYPE_CHECKING:
    from pathlib import Path

STATE_FILE = "state.json"
_SCHEMA = b"state/2 "
_OUTCOMES = {outcome.value: outcome for outcome in Outcome}


def save(folder: Path, state: State) -> None:
    """Leave ``state`` in ``folder``, that of the run."""
    write_bytes(folder / STATE_FILE, encode(state))


def saved(folder: Path) -> State | None:
    """The state that ``save`` left last; ``None`` where there is none, or none that is whole."""
    try:
        return decode((folder / STATE_FILE).read_bytes())
    except (FileNotFoundError, ValueError):
        return None


def encode(state: State) -> bytes:
    """A state's file: a line with the version of its form and a digest, then JSON."""
    body = orjson.dumps(_to_json(state))
    return _SCHEMA + sha256(body).hexdigest().encode() + b"\n" + body


def decode(content: bytes) -> State:
    """The inverse of ``encode``; ``ValueError`` for another version's file, or one not whole."""
    head, _, body = content.partition(b"\n")
    if head != _SCHEMA + sha256(body).hexdigest().encode():
        raise ValueError("not a state of this version with its digest")
    return _from_json(orjson.loads(body))


def _to_json(state: State) -> dict[str, Any]:
    return {
        **{name: getattr(state, name) for name in _PLAIN},
        "nodes": [[key, *_node(node)] for key, node in state.nodes.items()],
        "gates": [
            [key, {**vars(gate), "shown": list(map(list, gate.shown))}]
            for key, gate in state.gates.items()
        ],
        "amounts": [list(state.spent), list(state.reserved)],
        "halt": vars(state.halt) if state.halt else None,
        **{name: [[*key, value] for key, value in getattr(state, name).items()] for name in _KEYED},
    }


# Fields that JSON holds as they are, and those whose keys are pairs.
_PLAIN = (
    "run", "plan", "config", "snapshot", "seq", "head", "iteration", "unmetered", "variables",
    "ended", "signers", "experiment",
)  # fmt: skip
_KEYED = ("branches", "revisions", "feedback", "sent_back")


def _node(node: NodeState) -> list[Any]:
    values = node._asdict()
    values["artifacts"] = list(map(list, node.artifacts))
    values["usage"] = None if node.usage is None else list(node.usage)
    values["reserve"] = list(node.reserve)
    values["facts"] = dict(node.facts)
    return list(values.values())


def _from_json(data: dict[str, Any]) -> State:
    keyed: dict[str, Any] = {
        name: {(first, second): value for first, second, value in data.pop(name)} for name in _KEYED
    }
    spent, reserved = (Amount(*amount) for amount in data.pop("amounts"))
    nodes = Ordered.of([(key, _to_node(*rest)) for key, *rest in data.pop("nodes")])
    gates = Ordered.of([(key, _to_gate(gate)) for key, gate in data.pop("gates")])
    halt = data.pop("halt")
    return State(
        **data,
        **keyed,
        nodes=nodes,
        gates=gates,
        spent=spent,
        reserved=reserved,
        halt=Halt(**halt) if halt else None,
    )


def _to_node(
    status: str,
    attempt: int,
    final: bool,
    failures: int,
    artifacts: list[list[Any]],
    usage: list[Any] | None,
    reserve: list[Any],
    *rest: Any,
) -> NodeState:
    return NodeState(
        _OUTCOMES.get(status, status),
        attempt,
        final,
        failures,
        tuple([Artifact(*artifact) for artifact in artifacts]),
        None if usage is None else Usage(*usage),
        Amount(*reserve),
        *rest,
    )


def _to_gate(gate: dict[str, Any]) -> GateState:
    shown = tuple(Artifact(*artifact) for artifact in gate.pop("shown"))
    return GateState(**gate, shown=shown)
