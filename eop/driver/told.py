"""What the agents of a phase are told of the protocol and the run, and a manifest of it."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from eop.core.canonical import file_digest
from eop.core.files import write_json
from eop.knowledge import tried_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from eop.functions.context import Context
    from eop.protocol.prompts import Prompt

MANIFEST_SCHEMA = "told/2"
MANIFEST_FILE = "told.json"


def sections(context: Context, proposal: dict[str, Any] | None) -> dict[str, str]:
    """The parts of the prompt in their order, by name; none of them is empty.

    ``body`` is the phase's own prose, or ``document`` the whole protocol where the phase says
    ``context: full``.
    """
    phase = context.phase
    found = {"body": phase.body}
    if phase.context == "full":
        found = {"document": _document(context)}
    if proposal is not None:
        text = json.dumps(proposal, indent=2, ensure_ascii=False)
        found["proposal"] = f"## The proposal\n\n```json\n{text}\n```"
    if _proposes(context):
        found["recalled"] = tried_text(context.root)
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
) -> None:
    """Leave ``told.json`` beside the node's work: sections, prompts and inputs by their digests."""
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
    }
    head = {"schema": MANIFEST_SCHEMA, "node": context.instance.key}
    write_json(context.directory / MANIFEST_FILE, {**head, **manifest})


def _size(text: str) -> int:
    """Bytes of a text as it is handed over."""
    return len(text.encode())


def _document(context: Context) -> str:
    work = f"You work on the phase `{context.phase.id}` of this document."
    return f"{context.project.plan.document}\n\n{work}"


def _proposes(context: Context) -> bool:
    """Whether this phase leaves the list that opens the branches."""
    lists = {p.fan_out.artifact for p in context.project.plan.phases if p.fan_out}
    return any(output.name in lists for output in context.phase.outputs)
