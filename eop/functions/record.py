"""Rule ``record``: the bytes behind an iteration's entries, into DVC. The only writer of DVC."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eop.core.files import read_json, write_json
from eop.core.locks import exclusive
from eop.evidence import Dvc, NoRemote
from eop.functions.artifacts import Artifacts
from eop.functions.commit import commit_or_print
from eop.functions.evidence_archive import archive_path
from eop.leaderboard import read_entry
from eop.leaderboard.board import write_board
from eop.project.project import Project
from eop.runtime.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from eop.leaderboard import Entry

_LOCK = "runs/.record.lock"


def record(root: Path, run: str, iteration: str) -> None:
    """Store the split, the snapshot, checkpoints, ranks and evidence of an iteration's entries.

    ``iteration`` is its folder's name (``it02``). Everything is added in one call and pushed when
    the project has a default remote; without one, the command that adds it is printed. What DVC
    shows of the leaderboard is brought up to date. Killed anywhere, it is repeated: git is given
    nothing before the bytes are where they belong. ``recorded.json`` comes last, also for an
    iteration that published nothing.
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
    files = _files(root, entries)
    # Runs of one project take turns: two commits at once are refused by git.
    with exclusive(root / _LOCK, wait=True):
        dvc = Dvc(root)
        dvc.init()
        stored = dvc.add(list(files), sha256={path: it for path, it in files.items() if it})
        pushed = dvc.push([file.pointer for file in stored])
        if isinstance(pushed, NoRemote):
            print(f"nothing was pushed: the project has no DVC remote. Add one: {pushed.command}")
        write_board(root)
        pointers = [file.pointer for file in stored]
        commit_or_print(project, [entry.id for entry in entries], pointers)
        remote = None if isinstance(pushed, NoRemote) else pushed.remote
        _leave(project, iteration, {file.path: file.md5 for file in stored}, remote)


def _files(root: Path, entries: Sequence[Entry]) -> dict[str, str | None]:
    """What DVC is to hold, by path, with the SHA-256 that an entry names for it, if one does."""
    files: dict[str, str | None] = {}
    for entry in entries:
        evidence = entry.evidence
        named = [
            *evidence["split"]["files"],
            *([evidence["snapshot"]] if evidence["snapshot"] else ()),
        ]
        named += [file for name in ("checkpoints", "ranks") for file in evidence.get(name, ())]
        files |= {file["path"]: file["sha256"] for file in named}
        archive = archive_path(root, entry.id)
        if archive.is_file():
            files[archive.relative_to(root).as_posix()] = None
    return files


def _leave(project: Project, iteration: str, files: dict[str, str], remote: str | None) -> None:
    write_json(
        project.run_dir / iteration / "recorded.json",
        {"schema": "recorded/1", "files": files, "remote": remote},
    )
