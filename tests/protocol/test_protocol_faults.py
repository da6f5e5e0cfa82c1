"""Every code is reported for a planted fault, with the caret under what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from planted_branches import BRANCH_FAULTS
from planted_budgets import BUDGET_FAULTS
from planted_decisions import DECISION_FAULTS
from planted_faults import FAULTS, SOUND, Fault
from planted_patterns import PATTERN_FAULTS
from planted_places import PLACE_FAULTS

from eop.protocol.codes import CODES
from eop.protocol.compiler import check, load
from eop.protocol.diagnostics import render
from eop.protocol.products import PRODUCTS

if TYPE_CHECKING:
    from pathlib import Path

    from eop.protocol.diagnostics import Diagnostic

ALL_FAULTS = [
    *FAULTS,
    *BRANCH_FAULTS,
    *BUDGET_FAULTS,
    *DECISION_FAULTS,
    *PATTERN_FAULTS,
    *PLACE_FAULTS,
]
WHOLE_FILE = {"EOP101", "EOP102", "EOP103", "EOP117", "EOP119"}


def found(project: Path, text: str | bytes) -> list[Diagnostic]:
    path = project / "some.eop.md"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    products = {**PRODUCTS, "bounded": frozenset({"edit"})}
    unpriced = {"qwen-code": "house-model"}
    return check(path, root=project, products=products, unpriced=unpriced)


def test_the_sound_protocol_is_sound(project: Path) -> None:
    assert render(found(project, SOUND)) == ""
    assert load(project / "some.eop.md", root=project).loop.max == 3


@pytest.mark.parametrize("fault", ALL_FAULTS, ids=lambda f: f"{f.code}-{f.caret[:12].strip()}")
def test_a_planted_fault_is_found_where_it_is_and_little_else(project: Path, fault: Fault) -> None:
    diagnostics = found(project, fault.text)
    shown = [
        d.source[d.where.column - 1 : d.where.column - 1 + d.width]
        for d in diagnostics
        if d.code == fault.code and fault.says in d.message
    ]
    assert fault.caret in shown, render(diagnostics)
    assert len(diagnostics) <= 3, f"one fault, an avalanche:\n{render(diagnostics)}"


def test_every_code_has_a_planted_fault() -> None:
    assert {fault.code for fault in ALL_FAULTS} | WHOLE_FILE == set(CODES)


def test_a_missing_file(project: Path) -> None:
    [only] = check(project / "nowhere.eop.md", root=project)
    assert (only.code, only.where.line, only.source) == ("EOP101", None, None)
    assert render([only]).startswith("nowhere.eop.md: error[EOP101] cannot read it")


def test_a_folder_is_no_protocol(project: Path) -> None:
    assert [d.code for d in check(project / "config", root=project)] == ["EOP101"]


def test_bytes_that_are_not_text(project: Path) -> None:
    [only] = found(project, SOUND.encode().replace(b"Say what", b"Say \xff what"))
    assert only.code == "EOP102"
    assert str(only.where) == "some.eop.md:26:5"


@pytest.mark.parametrize("text", ["", " \n\n", "\ufeff"])
def test_an_empty_file(project: Path, text: str) -> None:
    assert [d.code for d in found(project, text)] == ["EOP103"]


def test_a_protocol_without_phases(project: Path) -> None:
    front = SOUND[: SOUND.index("# A sound")]
    assert [d.code for d in found(project, front + "Only prose.\n")] == ["EOP117"]


def test_empty_front_matter(project: Path) -> None:
    body = SOUND[SOUND.index("# A sound") :]
    [only] = found(project, f"---\n---\n{body}")
    assert (only.code, str(only.where)) == ("EOP105", "some.eop.md:1:1")
    assert "name, version, target, budget" in only.hint


def test_deep_nesting_is_a_fault_of_the_file(project: Path) -> None:
    text = SOUND.replace("needs: [agree]", f"needs: {'[' * 2000}")
    assert "EOP108" in {d.code for d in found(project, text)}


def test_all_faults_at_once(project: Path) -> None:
    """Faults of every kind in one document are all reported, in the order of the file."""
    text = SOUND
    planted = {
        "EOP306": ("eop: 1", "eop: 2"),
        "EOP116": ("Say what you see.\n\n", ""),
        "EOP201": ("needs: [base]", "needs: [bas]"),
        "EOP402": ("needs: [approve]", "needs: [propose]"),
        "EOP303": ("rounds: 2", "rounds: 20"),
        "EOP501": ("actions: 100,", "actions: 900,"),
        "EOP208": ("schema: review", "schema: revew"),
        "EOP407": ("{end: true}", "{goto: look, max: 1}"),
    }
    for old, new in planted.values():
        text = text.replace(old, new)
    diagnostics = found(project, text)
    assert {d.code for d in diagnostics} == set(planted)
    lines = [d.where.line for d in diagnostics]
    assert lines == sorted(lines)


@pytest.mark.parametrize("ending", ["\r\n", "\r"])
def test_line_ends_do_not_move_positions(project: Path, ending: str) -> None:
    faulty = SOUND.replace("needs: [base]", "needs: [bas]")
    expected = [(d.code, str(d.where)) for d in found(project, faulty)]
    assert [
        (d.code, str(d.where)) for d in found(project, faulty.replace("\n", ending))
    ] == expected


def test_an_example_of_a_block_goes_into_a_longer_fence(project: Path) -> None:
    example = "````markdown\n```eop\nphase: no_step\n```\n````\n"
    assert found(project, SOUND.replace("## Propose", f"{example}\n## Propose")) == []


def test_of_a_very_long_line_the_part_with_the_fault_is_shown(project: Path) -> None:
    long = " and ".join(["patience > 1"] * 20)
    text = SOUND.replace("preflight.passed", f"{long} and patiense > 2 and preflight.passed")
    [only] = found(project, text)
    assert only.where.column == len(f"when: {long} and ") + 1
    line, caret = render([only]).splitlines()[1:3]
    assert len(line) < 260
    assert line[caret.index("^") :].startswith("patiense > 2")
    assert caret.strip("| 0123456789") == "^" * len("patiense")


def test_joiners_and_marks_that_scripts_need_are_no_fault(project: Path) -> None:
    seen = "Say what you see. \U0001f469\u200d\U0001f52c \u05d0\u200e \u0645\u200c\u0646"
    assert found(project, SOUND.replace("Say what you see.", seen)) == []


def test_a_byte_order_mark_is_no_fault(project: Path) -> None:
    assert found(project, "\ufeff" + SOUND) == []
