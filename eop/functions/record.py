"""Rule ``record``: the bytes behind an iteration's entries, into DVC. The only writer of DVC."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eop.core.files import read_json, write_json
from eop.evidence import Dvc, NoRemote
from eop.functions.artifacts import Artifacts
from eop.functions.commit import commit_or_print
from eop.functions.evidence_archive import archive_path
from eop.leaderboard import read_entry
from eop.project.project import Project
from eop.runtime.trace import Trace

if TYPE_CHECKING:
    from pathlib import Path


def record(root: Path, run: str, iteration: str) -> None:
    """Store the split, the snapshot, checkpoints, ranks and evidence of an iteration's entries.

    ``iteration`` is its folder's name (``it02``). Everything is added in one call and pushed when
    the project has a default remote; without one, the command that adds it is printed. Repeating
    it is harmless. Leaves ``recorded.json``, also for an iteration that published nothing.
    """
    project = Project.of_run(root, run)
    state = Trace(project.trace_dir, project.plan).state()
    rows = Artifacts(project, state).of_function("publish", int(iteration[2:]))
    if rows is None:
        # Snakemake sees that `publish` has left; whether it completed, only the trace knows.
        print(f"{iteration} has published nothing: there is nothing to record")
        _leave(project, iteration, {}, None)
        return
    entries = [read_entry(root, entry) for entry in read_json(rows)["entries"]]
    paths: dict[str, None] = {}
    for entry in entries:
        paths |= dict.fromkeys(file["path"] for file in entry.evidence["split"]["files"])
        if entry.evidence["snapshot"]:
            paths[entry.evidence["snapshot"]["path"]] = None
        for name in ("checkpoints", "ranks"):
            paths |= dict.fromkeys(file["path"] for file in entry.evidence.get(name, ()))
        archive = archive_path(root, entry.id)
        if archive.is_file():
            paths[archive.relative_to(root).as_posix()] = None
    dvc = Dvc(root)
    dvc.init()
    stored = dvc.add(list(paths))
    pushed = dvc.push([file.pointer for file in stored])
    if isinstance(pushed, NoRemote):
        print(f"nothing was pushed: the project has no DVC remote. Add one: {pushed.command}")
    pointers = [file.pointer for file in stored]
    commit_or_print(project, [entry.id for entry in entries], pointers)
    remote = None if isinstance(pushed, NoRemote) else pushed.remote
    _leave(project, iteration, {file.path: file.md5 for file in stored}, remote)


def _leave(project: Project, iteration: str, files: dict[str, str], remote: str | None) -> None:
    write_json(
        project.run_dir / iteration / "recorded.json",
        {"schema": "recorded/1", "files": files, "remote": remote},
    )
