"""What the agents of a phase are told of the protocol and the run, and a manifest of it."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from eop.core.canonical import file_digest
from eop.core.files import read_json, write_json
from eop.knowledge.asking import phase_query, proposes
from eop.knowledge.recall import recall
from eop.protocol.signatures import DIRECTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from eop.functions.context import Context
    from eop.knowledge.recall import Recalled
    from eop.protocol.prompts import Prompt

MANIFEST_SCHEMA = "told/3"
MANIFEST_FILE = "told.json"


def recalled(context: Context, proposal: dict[str, Any] | None) -> Recalled | None:
    """What is known that bears on this node; ``None`` where nothing is asked, or memory is off."""
    project, budget = context.project, context.project.config.memory
    asked = "\n".join(_titles(_directions(context)))
    query = phase_query(project.root, project.plan, context.phase, text=asked, item=proposal)
    return recall(project.root, query, budget) if query and budget else None


def sections(
    context: Context, proposal: dict[str, Any] | None, known: Recalled | None
) -> dict[str, str]:
    """The parts of the prompt in their order, by name; none of them is empty.

    ``body`` is the phase's own prose, or ``document`` the whole protocol where the phase says
    ``context: full``; ``known`` is what ``recalled`` gives.
    """
    phase = context.phase
    found = {"body": phase.body}
    if phase.context == "full":
        found = {"document": _document(context)}
    if proposal is not None:
        text = json.dumps(proposal, indent=2, ensure_ascii=False)
        found["proposal"] = f"## The proposal\n\n```json\n{text}\n```"
    found["directions"] = _directions_text(_directions(context))
    found["recalled"] = known.text if known else ""
    feedback = context.state.feedback.get((context.instance.iteration, phase.id))
    if feedback is not None:
        reason = feedback or "(no reason was given)"
        found["feedback"] = f"## Why the last version was rejected\n\n{reason}"
    return {name: text.strip() for name, text in found.items() if text.strip()}


def prompt(parts: Mapping[str, str]) -> str:
    """The sections as one text."""
    return "\n\n".join(parts.values()) + "\n"


def write_manifest(
    context: Context,
    parts: Mapping[str, str],
    inputs: Mapping[str, Path],
    prompts: Iterable[Prompt],
    known: Recalled | None,
) -> None:
    """Leave ``told.json`` beside the node's work: sections, prompts and inputs by their digests.

    Of what was recalled it says for each lesson why, and what was withheld or did not fit.
    """
    told = [
        {"name": name, "sha256": hashlib.sha256(text.encode()).hexdigest(), "size": _size(text)}
        for name, text in parts.items()
    ]
    given = [
        {
            "name": name,
            "path": context.project.relative(path),
            "sha256": file_digest(path),
            "size": path.stat().st_size,
        }
        for name, path in sorted(inputs.items())
    ]
    by_path = {prompt.path: prompt.digest for prompt in prompts}
    manifest = {
        "context": context.phase.context,
        "sections": told,
        "prompts": [{"path": path, "sha256": by_path[path]} for path in sorted(by_path)],
        "inputs": given,
        "recalled": known.to_json() if known else None,
    }
    head = {"schema": MANIFEST_SCHEMA, "node": context.instance.key}
    write_json(context.directory / MANIFEST_FILE, {**head, **manifest})


def _size(text: str) -> int:
    """Bytes of a text as it is handed over."""
    return len(text.encode())


def _document(context: Context) -> str:
    work = f"You work on the phase `{context.phase.id}` of this document."
    return f"{context.project.plan.document}\n\n{work}"


def _directions(context: Context) -> list[dict[str, Any]]:
    """Where the turn before has said to go next, for a phase that proposes; best first.

    As ``pick`` has chosen, where the protocol runs it.
    """
    before = context.instance.iteration - 1
    if not before or not proposes(context.project.plan, context.phase):
        return []
    chosen = context.artifacts.of_function("pick", before)
    if chosen is not None:
        found: list[dict[str, Any]] = read_json(chosen)["directions"]
        return found
    paths = context.artifacts.of_schema(DIRECTIONS, before)
    return [direction for path in paths for direction in read_json(path)]


def _titles(directions: list[dict[str, Any]]) -> list[str]:
    return [str(direction["title"]) for direction in directions]


def _directions_text(directions: list[dict[str, Any]]) -> str:
    lines = []
    for at, item in enumerate(directions, 1):
        lines.append(f"{at}. {item['title']}: {item['why']}")
        if item.get("judged"):
            lines.append(f"   Ranked here because: {item['judged']}")
        if item.get("repeats"):
            lines.append(f"   Was tried before: {', '.join(item['repeats'])}")
    return "\n".join(["## Directions named by the turn before", "", *lines]) if lines else ""
