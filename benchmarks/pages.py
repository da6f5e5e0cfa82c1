"""What grows with the rows of a run: reading all that its page shows, and writing the page."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import child
from benchmarks.harness import cpu_seconds
from benchmarks.table import Table, number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.child import Row
    from benchmarks.grid import Grid

_NOTE = (
    "The page of one run, ten rows an iteration, each with its note, curve, review, preflight "
    "report and a patch of 80 lines. CPU seconds of one process. Read: entries, files and evidence "
    "by digest. Written: charts and text. Again: the same with patches and notes that were read "
    "before, as `eop report --watch` does. Page: MB, of which the chart library is 0.9."
)
_ENTRIES = (10, 100, 1000)
_QUICK = (3,)
_SAMPLE = "hstu-recipes-ml-1m-it01-p01"
_RUN = "hstu-recipes-ml-1m"
_SCHEMAS = ("entry", "review", "preflight")


def rows(grid: Grid) -> Iterator[Row]:
    """Measure page after page."""
    for entries in _QUICK if grid.quick else _ENTRIES:
        yield child.run(__name__, {"entries": entries}, environment={})


def measure(case: Row) -> Row:
    """One page, of a project in a folder of its own."""
    from eop.leaderboard import read_entries
    from eop.protocol.compiler import load
    from eop.report.entry_files import read_entry_files
    from eop.report.page import Material, page
    from eop.report.scripts import chart_script
    from eop.report.timeline import timeline
    from eop.report.view import RunView

    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        _plant_schemas(root)
        for at in range(case["entries"]):
            _plant(root, at)
        read: list[Any] = []
        read_s = cpu_seconds(
            lambda: read.extend(
                (entry, read_entry_files(root, entry.id)) for entry in read_entries(root)
            )
        )
        plan = load(child.ROOT / "config/protocols/hstu-recipes.eop.md", root=child.ROOT)
        material = Material(
            plan=plan,
            view=RunView(_RUN, plan.name, plan.title, 0, "completed", None, (), ()),
            entries=[entry for entry, _ in read],
            files={entry.id: files for entry, files in read},
            timeline=timeline(plan, ()),
            map=None,
            claims=(),
            anchors={},
            chart_script=chart_script(root),
        )
        text: list[str] = []
        write_s = cpu_seconds(lambda: text.append(page(material)))
        again_s = cpu_seconds(lambda: text.append(page(material)))
        size = len(text[0].encode()) / 1e6
        return {"read_s": read_s, "write_s": write_s, "again_s": again_s, "page_mb": size}


def _plant_schemas(root: Path) -> None:
    folder = root / "config/schemas"
    folder.mkdir(parents=True)
    for name in _SCHEMAS:
        shutil.copy(child.ROOT / f"config/schemas/{name}.schema.yaml", folder)


def _plant(root: Path, at: int) -> None:
    """A row like the one that ships, with evidence of its own."""
    from eop.core.canonical import canonical_json
    from eop.evidence.objects import ObjectStore
    from eop.functions.evidence_manifest import manifest_path

    turn, place = divmod(at, 10)
    name = f"{_RUN}-it{turn + 1:02d}-p{place + 1:02d}"
    shipped = child.ROOT / "leaderboard" / _SAMPLE
    folder = root / "leaderboard" / name
    folder.mkdir(parents=True)
    entry = (shipped / "entry.yaml").read_text().replace(f"id: {_SAMPLE}", f"id: {name}", 1)
    (folder / "entry.yaml").write_text(entry.replace("iteration: 1", f"iteration: {turn + 1}", 1))
    (folder / "curve.tsv").write_bytes((shipped / "curve.tsv").read_bytes())
    (folder / "patch.diff").write_text(_patch(at))
    note = root / "knowledge/notes" / f"{name}.md"
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_bytes((child.ROOT / "knowledge/notes" / f"{_SAMPLE}.md").read_bytes())
    store = ObjectStore.of(root)
    documents = {"review.json": _review(at), "preflight.json": _preflight(at)}
    files = [
        {
            "role": "preflight" if kind == "preflight.json" else "artifact",
            "path": f"runs/{_RUN}/it01/p01/step/artifacts/{kind}",
            "sha256": store.put(canonical_json(document)),
            "stored": True,
        }
        for kind, document in documents.items()
    ]
    manifest_path(root, name).write_text(json.dumps({"nodes": [], "files": files}))


def _patch(at: int) -> str:
    lines = "".join(f"+    total_{k} = weigh(items[{k}], {at})  # why\n" for k in range(80))
    head = "diff --git a/hstu/x.py b/hstu/x.py\n--- a/hstu/x.py\n+++ b/hstu/x.py\n"
    return f"{head}@@ -0,0 +1,80 @@\n{lines}"


def _review(at: int) -> dict[str, Any]:
    finding = {
        "id": "f1",
        "severity": "major",
        "family": "tensor_routing",
        "claim": f"What is wrong with {at}.",
        "evidence": "How it shows. " * 20,
        "suggested_check": "What would show it.",
        "status": "resolved",
    }
    facts = {"round": 1, "worst_open": None, "reviewer": "scripted", "summary": "One."}
    rounds = [{**facts, "verdict": "approved", "findings": [finding]}]
    common = {"schema": "review/1", "verdict": "approved", "until": "minor"}
    return {**common, "rounds": rounds, "findings": [finding]}


def _preflight(at: int) -> dict[str, Any]:
    checks = [
        {"id": f"I{k}", "title": "An invariant", "status": "passed", "detail": "", "measured": at}
        for k in range(1, 12)
    ]
    return {"schema": "preflight/1", "passed": True, "invariants": checks}


def table(rows: Sequence[Row]) -> Table:
    """A line for each page."""
    titles = ["rows", "read", "written", "again", "page"]
    return Table("The page of a run", _NOTE, titles, [_line(row) for row in rows])


def _line(row: Row) -> list[str]:
    figures = ("read_s", "write_s", "again_s", "page_mb")
    return [f"{row['entries']:,}", *(number(row[name]) for name in figures)]
