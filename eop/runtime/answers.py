"""Gates that wait: what people answered, as events, and what they are told."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eop.core.errors import EopError, ExitCode, Where
from eop.runtime import artifacts
from eop.runtime.due import asked, gates_of
from eop.runtime.gates import APPROVED, REJECTED, gate_file, signature_file
from eop.runtime.requests import differing, write_request
from eop.runtime.sentinels import read_sentinel, strays
from eop.runtime.signatures import pinned

if TYPE_CHECKING:
    from eop.protocol.model import Plan
    from eop.runtime.node import Instance
    from eop.runtime.state import State

_GATES = Path("gates")


@dataclass(frozen=True)
class GateView:
    """A gate that waits for a person: what to read, what to make, and what counts for nothing.

    ``signed``: an answer counts only with the signature of an allowed signer.
    """

    instance: Instance
    digest: str
    request: Path
    approve: Path
    reject: Path
    signed: bool = False
    problems: tuple[str, ...] = ()


def commands(run: str, gate: str, approve: str, reject: str, *, signed: bool) -> tuple[str, str]:
    """What a person types for yes and for no; ``approve`` and ``reject`` are the files' paths."""
    if signed:
        rest = f"{gate} --run {run} --sign KEY"
        return f"eop gate approve {rest}", f"eop gate reject {rest}"
    return f"touch {approve}", f"touch {reject}"


class EarlyAnswerError(EopError):
    """A sentinel was there before its gate was asked; nothing has changed."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            "EOP743",
            "this answer was there before its question: nobody can have read what it decides",
            where=Where(str(path)),
            hint="find out who made it (an agent without a jail could, an earlier run of this name "
            "may have left it), remove it, and run the same command again",
            exit_code=ExitCode.STATE,
        )


def refuse_early(root: Path, run: str, gate: Instance, digest: str) -> None:
    """Raise ``EarlyAnswerError`` when a gate that is about to be asked seems to be answered."""
    for status in (APPROVED, REJECTED):
        path = gate_file(root / "gates", run, gate, digest, status)
        for name in (path, signature_file(path)):
            if os.path.lexists(name):
                raise EarlyAnswerError(name.relative_to(root))


def decision(root: Path, plan: Plan, state: State) -> tuple[str, dict[str, Any]] | None:
    """The event of the first answer that a person gave to a gate that waits.

    An approval counts only while every shown file is what was committed (EOP734); a rejection
    counts always, for it is the way to have such a file made anew.
    """
    if state.ended:
        return None
    for gate in _open_requests(plan, state):
        digest = asked(plan, state, gate)
        found = read_sentinel(root / "gates", state.run, gate, digest, pinned(root, state))
        if found.status != REJECTED:
            artifacts.check(root, state.gates[gate.key].shown, hint=_way_out(state, gate, digest))
        if found.status != "none":
            answer = {"gate": gate.key, "digest": digest, "by": found.by, "reason": found.reason}
            signature = {"signature": found.signature} if found.signature else {}
            return f"gate_{found.status}", {**answer, **signature}
    return None


def _way_out(state: State, gate: Instance, digest: str) -> str:
    name = gate_file(_GATES, state.run, gate, digest, REJECTED).as_posix()
    return (
        f"gate {gate.key} asks about what was committed, so no approval counts now: restore the "
        f"file, or reject ({name}) to have it made anew and be asked again"
    )


def waiting(root: Path, plan: Plan, state: State) -> tuple[GateView, ...]:
    """Every gate that waits, its request page written."""
    return tuple(_view(root, plan, state, gate) for gate in _open_requests(plan, state))


def _open_requests(plan: Plan, state: State) -> list[Instance]:
    return [
        gate
        for gate in gates_of(plan, state)
        if (known := state.gate(gate)) is not None and known.status == "requested"
    ]


def _view(root: Path, plan: Plan, state: State, gate: Instance) -> GateView:
    directory, digest = root / "gates", asked(plan, state, gate)
    found = read_sentinel(directory, state.run, gate, digest, pinned(root, state))
    others = strays(directory, state.run, gate, digest, _answered(state, gate))
    return GateView(
        gate,
        digest,
        write_request(root, plan, state, gate),
        gate_file(directory, state.run, gate, digest, APPROVED),
        gate_file(directory, state.run, gate, digest, REJECTED),
        state.signers is not None,
        (*found.problems, *others),
    )


def _answered(state: State, gate: Instance) -> dict[str, str]:
    """Sentinels of earlier revisions by name: what is wrong with each, nothing if it counted."""
    said: dict[str, str] = {}
    now = state.gates[gate.key]
    for revision in range(1, gate.revision):
        one = replace(gate, revision=revision)
        known = state.gate(one)
        if known is None:
            continue
        names = ", ".join(differing(known, now)) or "nothing that is shown"
        why = f"it answers {one.key} ({known.status}); changed since then: {names}"
        for status in (APPROVED, REJECTED):
            name = gate_file(_GATES, state.run, one, known.digest, status).name
            said[name] = "" if known.status == status else why
    return said
