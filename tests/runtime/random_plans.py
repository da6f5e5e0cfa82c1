"""Random small plans: gates, branches side by side, joins of both kinds, budgets, a loop."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from eop.protocol.model import (
    ALL,
    ANY,
    Budget,
    FanOut,
    Gate,
    Join,
    Loop,
    OnReject,
    Output,
    Phase,
    Plan,
)


def step(name: str, line: int, budget: Budget, **more: Any) -> Phase:
    """An agent's phase, or a function's when ``function`` names one."""
    nodes = {} if more.get("function") else {"w": "scripted"}
    return Phase(name, line, name, "", nodes=nodes, budget=budget, **more)


BUDGETS = st.builds(
    Budget,
    actions=st.integers(0, 6),
    wall_s=st.integers(0, 6),
    attempts=st.integers(1, 2),
    tokens=st.none() | st.integers(0, 6),
    micro_usd=st.none() | st.integers(0, 6),
)
RUN_BUDGETS = st.builds(
    Budget,
    actions=st.integers(10, 200),
    wall_s=st.integers(10, 200),
    tokens=st.none() | st.integers(5, 100),
    micro_usd=st.none() | st.integers(5, 100),
)


@st.composite
def joins(draw: st.DrawFn, of: str) -> Join:
    wait = draw(st.sampled_from([ALL, ANY]))
    return Join(of, draw(st.integers(1 if wait == ANY else 0, 2)), wait)


@st.composite
def second_fan_out(draw: st.DrawFn) -> tuple[Phase, ...]:
    """Nothing, or branches over the same list and their join, beside the first ones or later."""
    if not draw(st.booleans()):
        return ()
    after = draw(st.sampled_from([("two",), ("join",)]))
    fan_out = FanOut("draft", "items", draw(st.integers(1, 3)))
    return (
        step("sketch", 6, draw(BUDGETS), needs=after, branch="draft", fan_out=fan_out),
        step("gather", 6, draw(BUDGETS), join=draw(joins("sketch"))),
    )


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Two trunk phases, maybe gates, a fan-out of two phases, a join, maybe a loop.

    Beside that fan-out, or after its join, there may be a second one over the same list.
    """
    first_gate, last_gate = draw(st.booleans()), draw(st.booleans())
    back = st.builds(OnReject, st.sampled_from([None, "one", "two"]), st.integers(0, 2))
    ordered = ("one",) if draw(st.booleans()) else ()
    on_branch = draw(st.sampled_from([("completed",), ("completed", "failed"), ("failed",)]))
    functions = st.sampled_from([None, "train"])
    phases = (
        step("one", 1, draw(BUDGETS), function=draw(functions)),
        step("two", 2, draw(BUDGETS), needs=ordered, outputs=(Output("items", "items.json"),)),
        step(
            "make",
            4,
            draw(BUDGETS),
            needs=("ask",) if first_gate else ("two",),
            branch="item",
            fan_out=FanOut("item", "items", 3),
        ),
        step(
            "judge",
            5,
            draw(BUDGETS),
            needs=("make",),
            branch="item",
            on_branch=on_branch,
            function=draw(functions),
        ),
        step("join", 6, draw(BUDGETS), join=draw(joins("judge"))),
    )
    second = draw(second_fan_out())
    phases += second
    ends = ["join", *(phase.id for phase in second if phase.join)]
    gates = []
    if first_gate:
        goto = draw(back)
        # Only what comes before a gate can be gone back to.
        gates.append(Gate("ask", 3, ("two",), ("items",), _before(goto, ordered)))
    if last_gate:
        gates.append(Gate("end", 7, tuple(ends), (), _before(draw(back), ordered)))
    turns = draw(st.integers(0, 3))
    last = ("end",) if last_gate else tuple(ends)
    start = draw(st.sampled_from(["one", "two"] if ordered else ["two"]))
    if turns and any(g.on_reject.goto == "one" for g in gates):
        start = "one"
    return Plan(
        name="p",
        version="1",
        title="",
        source="p.eop.md",
        target="t",
        variables={},
        budget=draw(RUN_BUDGETS),
        phases=phases,
        gates=tuple(gates),
        loop=Loop("again", 9, last, start, turns) if turns else None,
    )


def _before(rule: OnReject, ordered: tuple[str, ...]) -> OnReject:
    return OnReject() if rule.goto == "one" and not ordered else rule
