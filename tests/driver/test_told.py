"""What an agent is told: its phase's body, or the whole document, and a manifest of it."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
from function_runs import ITEMS, Small, plan_of, small
from knowledge_samples import learn, note
from knowledge_samples import project as knowledge

from eop.agents.jail import choose
from eop.core.canonical import file_digest
from eop.core.files import read_json
from eop.driver.told import prompt, recalled, sections, write_manifest
from eop.functions.context import Context
from eop.protocol.model import Output, Phase
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
    parts = sections(context, {"id": "wide"}, None)
    assert list(parts) == ["body", "proposal"]
    assert prompt(parts).startswith("Implement it.\n\n## The proposal")
    assert "All of it." not in prompt(parts)


def test_with_the_full_context_it_is_told_the_document(context: Context) -> None:
    full = replace(context, phase=replace(context.phase, context="full"))
    told = prompt(sections(full, None, None))
    assert told == (
        "---\neop: 1\n---\nAll of it.\n\nYou work on the phase `implement` of this document.\n"
    )


def test_feedback_is_told_even_without_a_reason(context: Context) -> None:
    state = replace(context.state, feedback={(1, "implement"): ""})
    parts = sections(replace(context, state=state), None, None)
    assert parts["feedback"].endswith("(no reason was given)")


def test_the_manifest_names_all_that_was_told_and_given(context: Context) -> None:
    given = context.root / "report.md"
    given.write_text("seen")
    parts = sections(context, None, None)
    read = read_prompt(REPOSITORY, "agent")
    write_manifest(context, parts, {"report": given}, [read, read], None)
    manifest = read_json(context.directory / "told.json")
    digest = hashlib.sha256(b"Implement it.").hexdigest()
    assert manifest == {
        "schema": "told/3",
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
        "recalled": None,
    }


@pytest.fixture
def learned(tmp_path: Path) -> Small:
    """A run at its proposals, in a project that knows two things."""
    run = small(tmp_path, plan=with_directions())
    knowledge(tmp_path)
    note(tmp_path, "n1", "worse", lesson="Wider nets forget.")
    note(tmp_path, "n2", title="Depth", entities=("dataset:toy",), lesson="Deeper is fine.")
    learn(tmp_path)
    run.run.advance()
    run.play("it01_baseline", {"baseline": run.baseline()})
    return run


def with_directions():
    plan = plan_of()
    evolve = Phase(
        "evolve",
        70,
        "Evolve",
        "Say where to go.",
        needs=("publish",),
        pattern="linear",
        nodes={"worker": "scripted"},
        outputs=(Output("directions", "directions.json", "directions"),),
    )
    loop = replace(plan.loop, after=("evolve",))
    return replace(plan, phases=(*plan.phases, evolve), loop=loop)


def test_who_proposes_is_told_what_is_known_and_the_manifest_says_why(learned: Small) -> None:
    context = learned.context("it01_propose")
    known = recalled(context, None)
    parts = sections(context, None, known)
    assert list(parts) == ["body", "recalled"]
    assert "> Wider nets forget." in prompt(parts) and "[n2]" in prompt(parts)
    write_manifest(context, parts, {}, [], known)
    kept = read_json(context.directory / "told.json")["recalled"]
    assert kept["budget"] == 1500 >= kept["tokens"] > 0
    assert {item["name"]: item["why"] for item in kept["told"]} == {
        "claim:n1": ["latest", "rests on n1"],
        "claim:n2": ["latest", "rests on n2"],
    }


def test_who_works_on_a_proposal_is_told_what_bears_on_it_alone(learned: Small) -> None:
    learned.play("it01_propose", {"proposals": ITEMS})
    context = learned.context("it01_p01_implement")
    known = recalled(context, context.artifacts.proposal(1, context.branch))
    assert [item.name for item in known.told] == ["claim:n1"]
    assert recalled(learned.context("it01_promote"), None) is None


def test_without_memory_nothing_is_recalled(learned: Small) -> None:
    context = learned.context("it01_propose")
    config = replace(context.project.config, memory=0)
    off = replace(context, project=replace(context.project, config=config))
    assert recalled(off, None) is None
    assert list(sections(off, None, recalled(off, None))) == ["body"]


def test_who_proposes_next_is_told_the_directions_of_the_turn_before(learned: Small) -> None:
    assert "directions" not in sections(learned.context("it01_propose"), None, None)
    learned.play("it01_propose", {"proposals": ITEMS})
    assert learned.state.branches
    learned.lose("p01")
    learned.lose("p02")
    learned.play("it01_promote")
    learned.play("it01_publish")
    named = [{"title": "FiLM", "why": "Users differ."}, {"title": "Depth", "why": "It held."}]
    learned.play("it01_evolve", {"directions": named})
    assert learned.state.iteration == 2
    context = learned.context("it02_propose")
    text = sections(context, None, None)["directions"]
    assert text.splitlines()[2:] == ["1. FiLM: Users differ.", "2. Depth: It held."]
    found = recalled(context, None)
    assert found.query.links == ("intervention:film",)
    assert "negative by links 1" in found.told[0].why and found.told[0].name == "claim:n1"
    assert "directions" not in sections(learned.context("it02_p01_implement"), ITEMS[0], None)
