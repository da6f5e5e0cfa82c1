"""Whatever is in the file, ``check`` answers; whatever is in a plan survives JSON."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from planted_faults import SOUND

from eop.protocol.codes import CODES
from eop.protocol.compiler import check
from eop.protocol.diagnostics import render
from eop.protocol.model import (
    Budget,
    FanOut,
    Gate,
    Join,
    Loop,
    OnReject,
    Output,
    Phase,
    Plan,
    Review,
)

if TYPE_CHECKING:
    import random
    from pathlib import Path

IN_PROJECT = settings(
    deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
LINES = SOUND.split("\n")


def examine(project: Path, content: bytes) -> None:
    path = project / "any.eop.md"
    path.write_bytes(content)
    diagnostics = check(path, root=project)
    lines = content.decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for found in diagnostics:
        assert found.code in CODES
        assert 1 <= found.where.line <= len(lines)
        assert found.where.column >= 1
    assert render(diagnostics).count("error[") >= len(diagnostics)


@IN_PROJECT
@given(st.text())
@example("---\n---\n")
@example("---\n---\n```eop\n" + "[" * 1500)
@example("```eop\nphase: {a: b}\n```")
@example("```eop\n? [a, b]\n: c\n```")
@example("```eop\n&a [*a]\n```")
@example("---\nbudget: 1\nvariables: [1]\n---\n```eop\nphase: a\nfor_each: 3\njoin: 4\n```")
def test_any_text_is_answered(project: Path, text: str) -> None:
    examine(project, text.encode(errors="replace"))


@IN_PROJECT
@given(st.binary())
def test_any_bytes_are_answered(project: Path, content: bytes) -> None:
    examine(project, content)


FRAGMENTS = [*LINES, "  ", "}", "[", ": ", "```eop", "phase: x", "for_each: idea", "needs: [x, x]"]


@IN_PROJECT
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=40))
def test_any_mix_of_lines_is_answered(project: Path, lines: list[str]) -> None:
    examine(project, "\n".join(lines).encode())


@IN_PROJECT
@given(st.randoms(use_true_random=False))
def test_any_damage_is_answered(project: Path, chance: random.Random) -> None:
    lines = list(LINES)
    for _ in range(chance.randint(1, 4)):
        index = chance.randrange(len(lines))
        match chance.randrange(4):
            case 0:
                del lines[index]
            case 1:
                lines.insert(index, chance.choice(lines))
            case 2:
                words = lines[index].split(" ")
                words[chance.randrange(len(words))] = chance.choice(["", "x", "7", "[", "null"])
                lines[index] = " ".join(words)
            case _:
                cut = chance.randrange(len(lines[index]) + 1)
                lines[index] = lines[index][:cut]
    examine(project, "\n".join(lines).encode())


@pytest.mark.parametrize("count", range(0, len(LINES), 7))
def test_a_document_cut_anywhere_is_answered(project: Path, count: int) -> None:
    examine(project, "\n".join(LINES[:count]).encode())


names = st.from_regex(r"[a-z]{1,6}", fullmatch=True)
some_names = st.lists(names, max_size=3, unique=True).map(tuple)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
budgets = st.builds(
    Budget,
    actions=st.none() | st.integers(1, 99),
    wall_s=st.none() | st.integers(1, 99),
    attempts=st.integers(1, 9),
)
phases = st.builds(
    Phase,
    id=names,
    line=st.integers(1, 99),
    title=st.text(),
    body=st.text(),
    needs=some_names,
    branch=st.none() | names,
    fan_out=st.none() | st.builds(FanOut, names, names, st.integers(1, 99)),
    join=st.none() | st.builds(Join, names, st.integers(0, 9)),
    on_branch=some_names,
    pattern=st.none() | names,
    nodes=st.dictionaries(names, names, max_size=3),
    review=st.none() | st.builds(Review, names, st.integers(1, 9)),
    check=st.none() | names,
    function=st.none() | names,
    arguments=st.dictionaries(names, values, max_size=3),
    tools=some_names,
    budget=budgets,
    outputs=st.lists(
        st.builds(Output, names, names, st.none() | names, st.booleans()), max_size=3
    ).map(tuple),
)
gates = st.builds(
    Gate,
    id=names,
    line=st.integers(1, 99),
    after=some_names,
    shows=some_names,
    on_reject=st.builds(OnReject, st.none() | names, st.integers(0, 9)),
    question=st.text(),
)
plans = st.builds(
    Plan,
    name=names,
    version=names,
    title=st.text(),
    source=st.text(),
    target=names,
    variables=st.dictionaries(names, values, max_size=3),
    budget=budgets,
    phases=st.lists(phases, max_size=3).map(tuple),
    gates=st.lists(gates, max_size=2).map(tuple),
    loop=st.none() | st.builds(Loop, names, st.integers(1, 99), some_names, names, st.just(2)),
)


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(plans)
def test_a_plan_survives_json(plan: Plan) -> None:
    again = Plan.from_json(plan.to_json())
    assert again == plan
    assert again.digest == plan.digest
    elsewhere = replace(
        plan, source="elsewhere", gates=tuple(replace(g, line=7) for g in plan.gates)
    )
    assert elsewhere.digest == plan.digest
    assert replace(plan, name=plan.name + "x").digest != plan.digest
