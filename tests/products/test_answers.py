"""Answers in a form: what real services accept as a form, and what comes back of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from attempts_real import attempt
from kits import CLAUDE, CODEX, OPENCODE, OPENHANDS, QWEN, ROOT, Kit
from scripted_model import Say

from eop.agents.contract import Expected, Mode, Status
from eop.core.yaml_files import read_yaml

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.products
FOUND = {
    "severity": "minor", "family": "none", "claim": "a", "evidence": "b", "suggested_check": "c",
    "status": "open",
}  # fmt: skip
REVIEW = {
    "summary": "One finding with a place, one without.",
    "findings": [{"id": "f1", **FOUND}, {"id": "f2", **FOUND, "file": "models/a.py", "line": 1}],
}
PROPOSALS = [
    {
        "id": "half-dropout", "title": "Half the dropout", "hypothesis": "h", "change": "c",
        "falsifier": "f", "risks": ["r"],
    },
]  # fmt: skip


@pytest.mark.parametrize(
    ("kit", "name", "value"),
    [
        *((kit, "findings", REVIEW) for kit in (CLAUDE, CODEX, OPENCODE, QWEN, OPENHANDS)),
        *((kit, "proposals", PROPOSALS) for kit in (CLAUDE, CODEX)),
    ],
)
def test_the_forms_of_the_house_are_answered(
    kit: Kit, name: str, value: Any, tmp_path: Path
) -> None:
    schema = read_yaml(ROOT / f"config/schemas/{name}.schema.yaml")
    done = attempt(
        kit,
        tmp_path,
        lambda space: [kit.answer(value), Say("Done.")],
        mode=Mode.READ_ONLY,
        editable=(),
        capabilities=("read", "shell"),
        outputs=(Expected(name, f"{name}.json", schema),),
    )
    assert [seen.refusal for seen in done.model.seen if seen.refusal] == []
    assert done.result.status is Status.OK, done.result.reason
    assert json.loads(done.result.outputs[name].read_text()) == value
