"""Every name must mean something. A near miss is reported, then read as what was meant."""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from eop.protocol.model import Gate, Loop, OnReject, Phase
from eop.protocol.yaml_nodes import Mapping

if TYPE_CHECKING:
    from collections.abc import Collection

    from eop.protocol.diagnostics import Report, Span
    from eop.protocol.draft import Draft, Placed


def resolve_references(draft: Draft, report: Report) -> Draft:
    """The draft with every reference to a step or an item either resolved or dropped.

    What is dropped leaves its step doubtful, so that one slip does not raise a dozen errors.
    """
    names = _Names(draft, report)
    phases = [_phase(phase, names) for phase in draft.phases]
    branches = {phase.value.id for phase in phases if phase.value.branch}
    return replace(
        draft,
        phases=tuple(_join(phase, branches, report) for phase in phases),
        gates=tuple(_gate(gate, names) for gate in draft.gates),
        loops=tuple(_loop(loop, names) for loop in draft.loops),
    )


class _Names:
    """What the document declares."""

    def __init__(self, draft: Draft, report: Report) -> None:
        self.report = report
        self.broken = draft.broken
        self.phases = [phase.value.id for phase in draft.phases]
        self.steps = [step.value.id for step in draft.steps]
        self.loops = [loop.value.id for loop in draft.loops]
        self.items = list(draft.heads)
        # A head whose own for_each is damaged opens branches of a name that nobody knows.
        self.items_known = not draft.broken and not any(
            phase.doubtful and isinstance(phase.node.values.get("for_each"), Mapping)
            for phase in draft.phases
        )

    def step(self, word: str, span: Span, *, phase: bool = False) -> str | None:
        """The step meant by ``word``, or ``None`` when that cannot be said."""
        known = self.phases if phase else self.steps
        if word in known:
            return word
        if word in self.broken:
            return None
        if word in self.loops or word in self.steps:
            kind = "loop" if word in self.loops else "gate"
            hint = "name a phase" if phase else "name a phase or a gate"
            self.report.error("EOP211", f"'{word}' is a {kind}", span, hint)
            return None
        meant = _nearest(word, known)
        hint = f"did you mean '{meant}'?" if meant else f"known: {', '.join(known)}"
        self.report.error("EOP201", f"no step is named '{word}'", span, hint)
        return meant


def _nearest(word: str, known: Collection[str]) -> str | None:
    near = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return near[0] if near else None


def _many(
    words: tuple[str, ...], placed: Placed[Any], key: str, names: _Names
) -> tuple[tuple[str, ...], bool]:
    """The steps meant, and whether one had to be dropped."""
    found = [names.step(word, placed.node.at(key, i)) for i, word in enumerate(words)]
    kept = tuple(dict.fromkeys(word for word in found if word is not None))
    return kept, None in found


def _phase(placed: Placed[Phase], names: _Names) -> Placed[Phase]:
    phase = placed.value
    needs, doubtful = _many(phase.needs, placed, "needs", names)
    join = phase.join
    if join is not None:
        of = names.step(join.of, placed.node.at("join", "of"), phase=True)
        doubtful = doubtful or of is None
        join = None if of is None else replace(join, of=of)
    back = phase.back
    if back is not None:
        to = names.step(back.to, placed.node.at("goto", "to"), phase=True)
        back = None if to is None else replace(back, to=to)
    branch = phase.branch
    if branch is not None and phase.fan_out is None and branch not in names.items:
        meant = _nearest(branch, names.items)
        if names.items_known:
            hint = f"did you mean '{meant}'?" if meant else _open_hint(names)
            message = f"no for_each opens '{branch}'"
            names.report.error("EOP210", message, placed.node.at("for_each"), hint)
        branch, doubtful = meant or branch, doubtful or meant is None
    value = replace(phase, needs=needs, join=join, branch=branch, back=back)
    return placed.having(value, doubtful=doubtful)


def _join(placed: Placed[Phase], branches: set[str], report: Report) -> Placed[Phase]:
    """The phase with a join that joins branches from outside them, or with none and in doubt."""
    join = placed.value.join
    if join is None:
        return placed
    if placed.value.branch:
        message, span = "a branch phase cannot join the branches", placed.node.key("join")
        report.error("EOP411", message, span, "drop its for_each")
        return placed.having(replace(placed.value, branch=None, fan_out=None))
    if join.of not in branches:
        message, span = f"'{join.of}' is not in a branch", placed.node.at("join", "of")
        report.error("EOP411", message, span, "name the last phase of the branches, or use needs")
        return placed.having(replace(placed.value, join=None), doubtful=True)
    return placed


def _open_hint(names: _Names) -> str:
    if names.items:
        return f"known: {', '.join(names.items)}"
    return "open it on the first phase of the branch: for_each: {item: ..., in: ..., max: 5}"


def _gate(placed: Placed[Gate], names: _Names) -> Placed[Gate]:
    gate = placed.value
    after, doubtful = _many(gate.after, placed, "after", names)
    reject = gate.on_reject
    if reject.goto is not None:
        goto = names.step(reject.goto, placed.node.at("on_reject", "goto"), phase=True)
        reject = OnReject(goto, reject.max)
    return placed.having(replace(gate, after=after, on_reject=reject), doubtful=doubtful)


def _loop(placed: Placed[Loop], names: _Names) -> Placed[Loop]:
    loop = placed.value
    after, doubtful = _many(loop.after, placed, "after", names)
    goto = None
    if loop.goto:
        goto = names.step(loop.goto, placed.node.at("goto"), phase=True)
    value = replace(loop, after=after, goto=goto or "")
    return placed.having(value, doubtful=doubtful or goto is None)
