"""The text that an agent is given: the phase's body and the plain facts of its turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eop.agents.contract import Mode

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from eop.agents.contract import Expected

_ROLES = {
    "reviewer": "Review the change in `../inputs/patch.diff`, already applied to your working "
    "directory. Judge it by the text above, the proposal and the check report, not by what its "
    "author says of it. Leave JSON with a `summary` and `findings`: each with an `id` that you "
    "keep across rounds, a `severity` (info, minor, major, critical), a `claim`, its `evidence`, "
    "`status` open, and where it fits `file` and `line`. A finding of an earlier round "
    "(`../inputs/findings.json`) stays open until you report it again with status resolved.",
    "fixer": "Mend the change in your working directory so that no finding in "
    "`../inputs/findings.json` stays open. Leave what was not complained about as it is.",
}


def compose(
    body: str,
    *,
    role: str,
    mode: Mode,
    editable: Sequence[str],
    inputs: Iterable[str],
    outputs: Iterable[Expected],
) -> str:
    """The prompt of one node. Paths in it are relative to the working directory."""
    sections = [body.strip(), f"## Your role: {role}"]
    if role in _ROLES:
        sections.append(_ROLES[role])
    if mode is Mode.WRITE:
        globs = ", ".join(f"`{glob}`" for glob in editable)
        sections.append(f"Change files in your working directory. You may change only: {globs}.")
    else:
        sections.append("Your working directory is read-only; a change to it ends the node.")
    given = [f"- `../inputs/{name}`" for name in inputs]
    if given:
        sections.append("\n".join(["Given to you, read-only:", *given]))
    asked = [f"- `../outputs/{expected.file}`" for expected in outputs]
    if asked:
        sections.append("\n".join(["Leave these files:", *asked]))
    return "\n\n".join(sections) + "\n"
