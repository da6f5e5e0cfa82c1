"""What holds each marker of the language: the checks, or the checks and the runtime."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from eop.protocol.markers import FRONT, KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from eop.protocol.diagnostics import Report, Span
    from eop.protocol.draft import Draft

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
        "workers": (BOTH, "bounded; so many at once, and the phase fails with too few completed"),
        "review": (BOTH, "bounded; the verdict follows by rule from the findings"),
        "check": (BOTH, "known, has a patch; runs before each review"),
        "function": (BOTH, "known, its inputs come before; runs without an agent"),
        "with": (BOTH, "typed by the function; passed as given"),
        "tools": (BOTH, "every product can enforce them; the product is started with them alone"),
        "budget": (BOTH, "fits into the run's; ends a node that exceeds it"),
        "resources": (BOTH, "GPUs where a network is run; each job asks its machine for them"),
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


# Unknown keys are reported as such.
KNOWN = frozenset(FRONT) | frozenset(key for fields in KINDS.values() for key in fields)


def markers_of(draft: Draft) -> Iterator[tuple[str | None, str, str, Span]]:
    """Every marker of a document: its step (``None`` in front matter), name, entry, place."""
    for key, span in draft.front_node.keys.items() if draft.front_node else ():
        yield None, key, "front.budget" if key == "budget" else key, span
    for step in draft.all_steps:
        for key, span in step.node.keys.items():
            yield step.value.id, key, key, span


def check_held(draft: Draft, report: Report) -> None:
    """A marker that the language knows and nothing holds would look like a rule."""
    for _, marker, entry, span in markers_of(draft):
        if entry not in HELD and marker in KNOWN:
            message = f"nothing holds the marker '{marker}'"
            hint = "this is a fault of the release; do without the marker, and report it"
            report.error("EOP119", message, span, hint)
