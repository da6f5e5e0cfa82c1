"""The page of one iteration, without scripts: its rows, steps, gates and entries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eop.leaderboard.ranking import ranked
from eop.report.entry_page import entry_page
from eop.report.page import boards, style
from eop.report.templating import environment
from eop.report.view import GateView

if TYPE_CHECKING:
    from eop.report.page import Material

# Nothing is fetched, and nothing runs.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def iteration_page(material: Material, number: int) -> str:
    """The whole page; the references, which no iteration made, stand with the first."""
    view, entries = material.view, material.entries
    own = [
        entry
        for entry in ranked(entries)
        if entry.id in material.files and (entry.iteration or 1) == number
    ]
    by_id = {entry.id: entry for entry in entries}
    iteration = next(one for one in view.iterations if one.number == number)
    return (
        environment()
        .get_template("iteration.html")
        .render(
            view=view,
            iteration=iteration,
            policy=_POLICY,
            style=style(),
            boards=list(boards(own, {entry.id for entry in own}, material.anchors)),
            summaries=(),
            filtered=False,
            gates=[step for step in iteration.steps if isinstance(step, GateView)],
            pages=[entry_page(entry, material.files[entry.id], by_id) for entry in own],
            own=frozenset(entry.id for entry in own),
        )
    )
