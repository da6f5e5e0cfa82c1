"""The final answer as an output, and real products end to end with stand-ins for their programs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from model_api import Answer, responses_stream, upstream

from eop.agents import patch, workspace
from eop.agents.answer import answer, leave
from eop.agents.contract import Endpoint, Expected, Limits, Mode, Request, Result, Status, Turn
from eop.agents.events import Event
from eop.agents.invoke import invoke
from eop.agents.jail import Jail, Level
from eop.agents.products.codex import Codex
from eop.agents.products.program import Settings

OBJECT = Expected("review", "review.json", {"type": "object"})
TEXT = Expected("plan", "plan.md")
ROLLOUT = Path(__file__).parents[1] / "fixtures/agents/codex/0.171.0/review_schema_ok"


@pytest.mark.parametrize(
    ("data", "schema", "expected"),
    [
        ({"text": "A plan.\n"}, None, "A plan.\n"),
        ({"text": "", "structured": {"a": 1}}, OBJECT.schema, '{\n  "a": 1\n}\n'),
        ({"text": '```json\n{"a": 1}\n```'}, OBJECT.schema, '{\n  "a": 1\n}\n'),
        ({"text": "Looks good."}, OBJECT.schema, "Looks good.\n"),
        ({"text": "```\nx\n```"}, None, "```\nx\n```\n"),
        ({"text": '{"answer": [1]}'}, {"type": "array"}, "[\n  1\n]\n"),
        ({"text": None}, None, None),
        ({}, OBJECT.schema, None),
    ],
)
def test_the_answer_as_a_file(
    data: dict[str, object], schema: dict[str, object] | None, expected: str | None
) -> None:
    assert answer(Event("final", data), schema) == expected


def test_a_file_that_was_left_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "plan.md"
    path.symlink_to("/nowhere")
    leave(path, TEXT, Event("final", {"text": "x"}))
    assert path.is_symlink()


# One call of the model at the base URL that the program is told.
CALL = f"""
base=$(printf '%s' "$*" | sed 's/.*base_url="\\([^"]*\\)".*/\\1/')
BASE=$base {sys.executable} -c '
import os, urllib.request
headers = {{"authorization": "Bearer " + os.environ["RT_KEY"]}}
body = b"{{\\"model\\": \\"m\\"}}"
urllib.request.urlopen(
    urllib.request.Request(os.environ["BASE"] + "/responses", body, headers)).read()
'
"""


def run(folder: Path, script: str, url: str = "http://127.0.0.1:9") -> Result:
    """A review by Codex, whose program is a script here."""
    binary = folder / "codex"
    binary.write_text(
        f"#!/bin/sh\nif [ $1 = --version ]; then echo codex 0.171.0; exit; fi\n{script}"
    )
    binary.chmod(0o755)
    (folder / "base").mkdir()
    (folder / "base/a.py").write_text("a = 1\n")
    store = patch.init_store(folder / "store.git")
    tree = patch.commit_tree(store, folder / "base")
    workspace.create(folder / "attempt", store, tree, {}, "Review it.\n")
    request = Request(
        turn=Turn("run", "node", "review", "reviewer", 1),
        product="codex",
        task="Review it.\n",
        directory=folder / "attempt",
        store=store,
        base=tree,
        mode=Mode.READ_ONLY,
        editable=(),
        capabilities=("read", "shell"),
        limits=Limits(wall_s=60, idle_s=60, grace_s=1),
        outputs=(OBJECT,),
        endpoint=Endpoint(url, "tok-12345"),
    )
    return invoke(Codex(Settings(str(binary), "m")), request, Jail(Level.NONE))


def test_a_review_by_a_product_that_only_answers(tmp_path: Path) -> None:
    script = CALL + (
        'mkdir -p "$CODEX_HOME/sessions/2026"\n'
        f'cp {ROLLOUT}/rollout.jsonl "$CODEX_HOME/sessions/2026/rollout-1.jsonl"\n'
        f"cat {ROLLOUT}/stdout\n"
    )
    with upstream(Answer(frames=responses_stream(5000, 10))) as api:
        result = run(tmp_path, script, api.url)
    assert result.status is Status.OK, result.reason
    assert json.loads(result.outputs["review"].read_text()) == {"verdict": "approve", "issues": []}
    # What it tells of its tokens is not what the model was asked.
    assert (result.usage.input, result.usage.source) == (5000, "gateway")
    assert result.notes == ("the product tells of 110 tokens, the gateway counted 5010",)
    assert result.product is not None
    assert result.product.version == "0.171.0"
    assert "session-1" in result.trace
    for path in (tmp_path / "attempt").rglob("*"):
        assert not path.is_file() or b"tok-12345" not in path.read_bytes(), path


def test_a_program_that_refuses_its_options_did_not_start(tmp_path: Path) -> None:
    result = run(tmp_path, "echo 'unexpected argument' >&2\nexit 2\n")
    assert (result.status, result.reason.code) == (Status.SETUP_ERROR, "not_started")
    assert "unexpected argument" in result.reason.detail
    assert not result.retryable
