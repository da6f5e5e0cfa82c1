"""A gate dominates a step if no course of events runs the step while the gate is not approved."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st
from planted_faults import SOUND

from eop.protocol.compiler import check
from eop.protocol.dominators import Dominators
from eop.protocol.model import Gate, OnReject, Phase

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Steps = dict[str, Phase | Gate]
COMPLETED, SKIPPED, FAILED, APPROVED, WAITING = range(5)


@st.composite
def protocols(draw: st.DrawFn) -> Steps:
    """Up to six steps outside branches, each after some of those before it."""
    steps: Steps = {}
    for line in range(draw(st.integers(2, 6))):
        before = (
            draw(st.lists(st.sampled_from(list(steps)), unique=True, max_size=3)) if steps else []
        )
        name = f"s{line}"
        if draw(st.booleans()) and before:
            steps[name] = Gate(name, line, tuple(before), (), OnReject())
        else:
            when = draw(st.sampled_from([None, "x"]))
            optional = draw(st.booleans())
            steps[name] = Phase(name, line, "", "", tuple(before), when=when, optional=optional)
    return steps


def requires(steps: Steps) -> dict[str, tuple[str, ...]]:
    return {n: s.after if isinstance(s, Gate) else s.needs for n, s in steps.items()}


def courses(steps: Steps) -> Iterator[dict[str, int]]:
    """What guards and optional phases may come to; other phases must complete, or the run ends."""
    ways = []
    for step in steps.values():
        can_skip = isinstance(step, Phase) and step.when is not None
        can_fail = isinstance(step, Phase) and step.optional
        ways.append([COMPLETED, *([SKIPPED] if can_skip else []), *([FAILED] if can_fail else [])])
    for chosen in product(*ways):
        yield dict(zip(steps, chosen, strict=True))


def played(steps: Steps, course: dict[str, int], closed: str) -> dict[str, int]:
    """The end of each step when nobody ever answers the gate ``closed``."""
    ends: dict[str, int] = {}
    for name, step in steps.items():
        before = [(ends[r], steps[r]) for r in requires(steps)[name]]
        if any(end == WAITING for end, _ in before):
            ends[name] = WAITING
        elif any(
            end != APPROVED if isinstance(s, Gate) else end != COMPLETED and not s.optional
            for end, s in before
        ):
            ends[name] = SKIPPED
        elif isinstance(step, Gate):
            ends[name] = WAITING if name == closed else APPROVED
        else:
            ends[name] = course[name]
    return ends


@settings(max_examples=100, deadline=None)
@given(protocols())
def test_it_agrees_with_every_course_of_events(steps: Steps) -> None:
    found = Dominators(steps, requires(steps))
    gates = [name for name, step in steps.items() if isinstance(step, Gate)]
    for gate in gates:
        passed = {
            name
            for course in courses(steps)
            for name, end in played(steps, course, gate).items()
            if end in (COMPLETED, FAILED, APPROVED)
        }
        for name in steps:
            assert (gate in found.of(name)) == (name not in passed), (name, gate)


def test_an_optional_phase_between_is_a_way_round_a_gate_that_may_not_be_asked(
    project: Path,
) -> None:
    """Held: the gate is asked whatever happens. Not held: a guard above may leave it unasked."""
    optional = "```eop\nphase: remark\nneeds: [agree]\noptional: true\npattern: linear\n"
    optional += "nodes: {writer: scripted}\ntools: [read]\noutputs: {remark: {file: remark.md}}\n"
    optional += "budget: {actions: 5, wall: 5m}\n"
    optional += "```\n\nRemark.\n\n"
    start = SOUND.index("```eop\nphase: base\n")
    text = SOUND[:start] + optional + SOUND[start:].replace("needs: [agree]", "needs: [remark]", 1)
    path = project / "round.eop.md"
    path.write_text(text)
    assert check(path, root=project) == []
    path.write_text(text.replace("phase: look\n", "phase: look\nwhen: patience > 1\n"))
    found = check(path, root=project)
    assert {one.code for one in found} == {"EOP402"}
    assert found[0].source == "phase: base"
