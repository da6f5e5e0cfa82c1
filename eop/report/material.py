"""The edge of the page: everything that it is made of, read from the project."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eop.knowledge.graph import build
from eop.knowledge.store import open_store
from eop.leaderboard import read_entries
from eop.leaderboard.anchors import read_anchors
from eop.report.claims import shown_claims
from eop.report.entry_files import read_entry_files
from eop.report.knowledge_map import knowledge_map
from eop.report.page import Material
from eop.report.scripts import chart_script
from eop.report.timeline import timeline
from eop.report.view import view
from eop.runtime.trace import Trace

if TYPE_CHECKING:
    from eop.project.project import Project


def read_material(project: Project) -> Material:
    """All that the page of a run shows, as it is now."""
    root = project.root
    trace = Trace(project.trace_dir, project.plan)
    state, events = trace.state(), trace.events()
    entries = read_entries(root)
    own = [entry.id for entry in entries if entry.run == project.run]
    with open_store(root) as store:
        drawn, claims = knowledge_map(build(store), own), shown_claims(root, store, own)
    return Material(
        plan=project.plan,
        view=view(project.plan, state, events),
        entries=entries,
        files={name: read_entry_files(root, name) for name in own},
        timeline=timeline(project.plan, events),
        map=drawn,
        claims=claims,
        anchors=read_anchors(root),
        chart_script=chart_script(root / "runs"),
    )
