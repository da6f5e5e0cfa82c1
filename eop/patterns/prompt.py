"""The facts of a node's turn in words: what its prompt is filled in with."""

from __future__ import annotations

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
    asked = [f"- `../outputs/{expected.file}`" for expected in outputs]
    return {
        "task": task.strip(),
        "role": role,
        "access": _access(mode, editable),
        "given": "\n".join(given) or "- nothing",
        "asked": "\n".join(asked) or "- none: your change is what is asked for",
    }


def _access(mode: Mode, editable: Sequence[str]) -> str:
    if mode is Mode.READ_ONLY:
        return "Your working directory is read-only; a change to it ends the node."
    globs = ", ".join(f"`{glob}`" for glob in editable)
    return f"Change files in your working directory. You may change only: {globs}."
