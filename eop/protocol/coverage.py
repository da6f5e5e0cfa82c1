"""How every marker of a protocol is held: by the checks, by the runtime, or by both."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from eop.protocol.compiler import analyse
from eop.protocol.diagnostics import ProtocolErrors
from eop.protocol.products import PRODUCTS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

STATIC = "static"
BOTH = "static + runtime"

HELD: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "eop": (STATIC, "the language version is supported"),
        "name": (STATIC, "well-formed"),
        "version": (STATIC, "well-formed"),
        "target": (BOTH, "exists; its pinned snapshot is what agents see"),
        "variables": (STATIC, "defaults have the declared type"),
        "front.budget": (BOTH, "phases fit into it; no node enters beyond it"),
        "phase": (STATIC, "unique, fit for a file name"),
        "needs": (BOTH, "exist, acyclic; a node enters when all are done"),
        "for_each": (BOTH, "bounded, the list comes before; branches are counted when opened"),
        "on_branch": (BOTH, "known outcomes; a node of a failed branch enters only if named"),
        "join": (
            BOTH,
            "joins branches, can fire; waits for all, or cuts off those it does not need",
        ),
        "pattern": (BOTH, "known; routes the nodes"),
        "nodes": (BOTH, "roles complete, products known; each role runs its product"),
        "review": (BOTH, "bounded; the verdict follows by rule from the findings"),
        "check": (BOTH, "known, has a patch; runs before each review"),
        "function": (BOTH, "known, its inputs come before; runs without an agent"),
        "with": (BOTH, "typed by the function; passed as given"),
        "tools": (BOTH, "every product can enforce them; the product is started with them alone"),
        "budget": (BOTH, "fits into the run's; ends a node that exceeds it"),
        "when": (BOTH, "typed, reads what is known by then; a node enters only when it is true"),
        "optional": (BOTH, "nobody requires what it leaves; others go on without it"),
        "context": (BOTH, "known; the manifest of what an agent was told names it"),
        "outputs": (BOTH, "one producer each, schemas exist; a node without them has failed"),
        "gate": (STATIC, "unique, waited for, before all that builds on what it shows"),
        "after": (BOTH, "exist, outside branches; waited for"),
        "shows": (BOTH, "produced before; their digest names the sentinel"),
        "on_reject": (BOTH, "goes back within bounds or ends; rejections are counted"),
        "loop": (STATIC, "at most one"),
        "goto": (BOTH, "comes before it; starts the next iteration, or new revisions"),
        "while": (BOTH, "typed, reads what is known by then; a turn begins only when it is true"),
        "until": (BOTH, "typed, reads what is known by then; a turn begins only when it is false"),
        "max": (BOTH, "bounded; turns are counted"),
    }
)


@dataclass(frozen=True)
class Coverage:
    """One marker of a document: its line, its step (``None`` in front matter), how it is held."""

    line: int
    step: str | None
    marker: str
    held: str
    by: str

    @property
    def name(self) -> str:
        """The marker with its step before it."""
        return f"{self.step}.{self.marker}" if self.step else self.marker


def coverage(
    path: Path, root: Path, *, products: Mapping[str, frozenset[str]] = PRODUCTS
) -> list[Coverage]:
    """Every marker of the protocol at ``path``, in the order of the file.

    Raises ``ProtocolErrors`` when the protocol is not sound: then nothing is held.
    """
    analysis = analyse(path, root=root, products=products)
    draft = analysis.draft
    if analysis.diagnostics or draft is None or draft.front_node is None:
        raise ProtocolErrors(analysis.diagnostics)
    rows = [
        _row(span.line, None, key, "front.budget" if key == "budget" else key)
        for key, span in draft.front_node.keys.items()
    ]
    for step in draft.all_steps:
        rows += [_row(span.line, step.value.id, key, key) for key, span in step.node.keys.items()]
    return sorted(rows, key=lambda row: row.line)


def _row(line: int, step: str | None, marker: str, entry: str) -> Coverage:
    held, by = HELD[entry]
    return Coverage(line, step, marker, held, by)
