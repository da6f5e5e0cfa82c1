"""Random decisions put into a plan of the shape that the random histories play."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from eop.protocol.model import Back, Output, Phase, Plan

if TYPE_CHECKING:
    from eop.protocol.expressions import Value

FACTS = {"first.ok": "boolean", "len(items)": "integer", "made.ok": "boolean"}
LEAVES = {"one": "first", "make": "made"}
ANYWHERE = ["patience > 1", "iteration < 2", "not (patience * 2 == 2)"]
# What each phase may read: what comes before it on every path.
READS = {
    "one": [],
    "two": [],
    "make": ["len(items) > 1"],
    "judge": ["made.ok", "made.ok", "not made.ok", "branches > 1"],
    "join": ["len(items) > 1", "branches in [0, 2]"],
    "sketch": ["len(items) < 2"],
    "gather": ["len(items) > 0"],
}
VALUES = {"boolean": st.booleans(), "integer": st.integers(0, 2)}


@st.composite
def decided(draw: st.DrawFn, plan: Plan) -> Plan:
    """``plan`` with guards, optional phases, a way back, and a condition of its loop."""
    ordered = "one" in plan.requirements("two")
    phases = []
    for phase in plan.phases:
        reads = [
            *ANYWHERE,
            *READS[phase.id],
            *(["first.ok"] if ordered and phase.id == "two" else []),
        ]
        when = draw(st.none() | st.none() | st.sampled_from(reads))
        back = draw(st.none() | ways_back(phase.id))
        left = LEAVES.get(phase.id)
        outputs = phase.outputs + ((Output(left, f"{left}.json"),) if left else ())
        # The list that opens branches may not be optional.
        optional = phase.id != "two" and draw(st.integers(0, 3)) == 0
        phases.append(replace(phase, when=when, back=back, outputs=outputs, optional=optional))
    loop = plan.loop
    if loop is not None:
        conditions = st.none() | st.sampled_from([*ANYWHERE, "len(items) > 1"])
        key = draw(st.sampled_from(["while_true", "until_true"]))
        loop = replace(loop, **{key: draw(conditions)})
    patience = {"patience": {"type": "integer", "default": 2}}
    return replace(plan, phases=tuple(phases), loop=loop, facts=FACTS, variables=patience)


def ways_back(name: str) -> st.SearchStrategy[Back | None]:
    """From the join, to where its list was made."""
    if name != "join":
        return st.none()
    whens = st.sampled_from(["len(items) > 1", "patience > 1", "iteration > 1"])
    return st.builds(Back, st.just("two"), whens, st.integers(1, 2))


def facts_of(plan: Plan, phase: Phase, data: st.DataObject) -> dict[str, Value]:
    """Random facts that a completed ``phase`` comes with."""
    return {term: data.draw(VALUES[kind]) for term, kind in plan.owed(phase.id).items()}
