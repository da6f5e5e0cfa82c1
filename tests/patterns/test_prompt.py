"""What a node is told of the files that it must leave."""

from __future__ import annotations

import json

from eop.agents.contract import Expected, Mode
from eop.patterns.prompt import values

SCHEMA = {"type": "array", "items": {"type": "string"}}
LIST, NOTES = Expected("ideas", "ideas.json", SCHEMA), Expected("notes", "notes.md")


def asked(mode: Mode, *outputs: Expected) -> str:
    told = values("Do it.", role="r", mode=mode, editable=["a/**"], inputs=[], outputs=outputs)
    return told["asked"]


def test_a_form_is_told_whole() -> None:
    text = asked(Mode.WRITE, LIST, NOTES)
    assert text.splitlines()[:2] == ["- `../outputs/ideas.json`", "- `../outputs/notes.md`"]
    assert json.loads(text.split("```json")[1].split("```")[0]) == SCHEMA


def test_only_the_single_output_of_a_reader_may_be_its_answer() -> None:
    word = "your final answer is the file"
    assert word in asked(Mode.READ_ONLY, NOTES)
    assert word not in asked(Mode.READ_ONLY, LIST, NOTES)
    assert word not in asked(Mode.WRITE, NOTES)


def test_who_leaves_no_file_is_asked_for_a_change() -> None:
    assert asked(Mode.WRITE) == "- none: your change is what is asked for"
