"""What an agent is told: its phase's body, or the whole document, and a manifest of it."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
from function_runs import small

from eop.agents.jail import choose
from eop.core.canonical import file_digest
from eop.core.files import read_json
from eop.driver.told import prompt, sections, write_manifest
from eop.functions.context import Context
from eop.protocol.prompts import read_prompt
from eop.runtime.node import Instance

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def context(tmp_path: Path) -> Context:
    run = small(tmp_path)
    plan = replace(run.project.plan, document="---\neop: 1\n---\nAll of it.")
    phase = replace(plan.phase("implement"), body="Implement it.\n")
    project = replace(run.project, plan=plan)
    jail = choose("off", trusted=True)
    return Context(project, phase, Instance(1, "implement", "p01"), run.state, jail)


def test_an_agent_is_told_the_body_of_its_phase(context: Context) -> None:
    parts = sections(context, {"id": "wide"})
    assert list(parts) == ["body", "proposal"]
    assert prompt(parts).startswith("Implement it.\n\n## The proposal")
    assert "All of it." not in prompt(parts)


def test_with_the_full_context_it_is_told_the_document(context: Context) -> None:
    full = replace(context, phase=replace(context.phase, context="full"))
    told = prompt(sections(full, None))
    assert told == (
        "---\neop: 1\n---\nAll of it.\n\nYou work on the phase `implement` of this document.\n"
    )


def test_feedback_is_told_even_without_a_reason(context: Context) -> None:
    state = replace(context.state, feedback={(1, "implement"): ""})
    parts = sections(replace(context, state=state), None)
    assert parts["feedback"].endswith("(no reason was given)")


def test_the_manifest_names_all_that_was_told_and_given(context: Context) -> None:
    given = context.root / "report.md"
    given.write_text("seen")
    parts = sections(context, None)
    read = read_prompt(REPOSITORY, "agent")
    write_manifest(context, parts, {"report": given}, [read, read])
    manifest = read_json(context.directory / "told.json")
    digest = hashlib.sha256(b"Implement it.").hexdigest()
    assert manifest == {
        "schema": "told/2",
        "node": "it01_p01_implement",
        "context": "body",
        "sections": [{"name": "body", "sha256": digest, "size": 13}],
        "prompts": [
            {
                "path": "config/prompts/agent.md",
                "sha256": file_digest(REPOSITORY / "config/prompts/agent.md"),
            }
        ],
        "inputs": [
            {"name": "report", "path": "report.md", "sha256": file_digest(given), "size": 4}
        ],
    }
