"""What the page of a run with a thousand candidates is made of: ten in each of 100 turns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from entry_samples import candidate, scores
from reported_run import CURVE, patch_of
from research_run import research

from eop.leaderboard import Decision, Proposal
from eop.report.entry_files import EntryFiles
from eop.report.page import Material
from eop.report.scripts import chart_script
from eop.report.timeline import timeline
from eop.report.view import RunView

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from eop.leaderboard import Entry


def _entries() -> Iterator[Entry]:
    parent = "many-base"
    base = {"kind": "base", "iteration": None, "parent": None, "decision": None}
    yield candidate(parent, run="many", test=scores(0.02), **base)
    for number in range(1000):
        turn, place = divmod(number, 10)
        won = place == 9
        name = f"many-it{turn + 1:02d}-p{place + 1:02d}"
        yield candidate(
            name,
            run="many",
            iteration=turn + 1,
            branch=f"p{place + 1:02d}",
            parent=parent,
            proposal=Proposal(str(number), f"Idea {number}", f"Because of reason {number}."),
            decision=Decision(won, 0.01, (0.002 if won else -0.01, 0.03), "by rule"),
            test=scores(0.05 + number * 1e-5),
        )
        parent = name if won else parent


def thousand(cache_dir: Path) -> Material:
    entries = list(_entries())
    patch = patch_of("idea").decode()
    files = {
        entry.id: EntryFiles(patch=patch, curve=CURVE.decode(), note=f"# {entry.id}\n")
        for entry in entries
    }
    script = chart_script(cache_dir)
    view = RunView("many", "research 1", "Many", 0, "completed", None, (), ())
    line = timeline(research(), ())
    return Material(research(), view, entries, files, line, None, (), {}, script)
