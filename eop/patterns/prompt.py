"""The facts of a node's turn in words: what its prompt is filled in with."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from eop.agents.contract import Mode

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from eop.agents.contract import Expected


def values(
    task: str,
    *,
    role: str,
    mode: Mode,
    editable: Sequence[str],
    inputs: Iterable[str],
    outputs: Iterable[Expected],
) -> dict[str, str]:
    """A value for each variable of a prompt. Paths in it are relative to the working directory."""
    given = [f"- `../inputs/{name}`" for name in inputs]
    return {
        "task": task.strip(),
        "role": role,
        "access": _access(mode, editable),
        "given": "\n".join(given) or "- nothing",
        "asked": _asked(mode, list(outputs)) or "- none: your change is what is asked for",
    }


def _access(mode: Mode, editable: Sequence[str]) -> str:
    if mode is Mode.READ_ONLY:
        return "Your working directory is read-only; a change to it ends the node."
    globs = ", ".join(f"`{glob}`" for glob in editable)
    return f"Change files in your working directory. You may change only: {globs}."


def _asked(mode: Mode, outputs: list[Expected]) -> str:
    """The files to leave and their forms: not every product is told the form by other means."""
    parts = ["\n".join(f"- `../outputs/{expected.file}`" for expected in outputs)]
    # The same condition as ``Request.answer``.
    if mode is Mode.READ_ONLY and len(outputs) == 1:
        parts.append(
            "Where you cannot write it, your final answer is the file: its content, nothing else."
        )
    for expected in outputs:
        if expected.schema is not None:
            form = json.dumps(expected.schema, indent=1, ensure_ascii=False)
            parts.append(f"`{expected.file}` is JSON of this schema:\n\n```json\n{form}\n```")
    return "\n\n".join(parts)
