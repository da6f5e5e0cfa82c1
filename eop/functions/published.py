"""What publishing vouches for: the files behind a run's rows, by digest, and whether they hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eop.core.files import read_json
from eop.evidence import FileRef, problems
from eop.functions.artifacts import Artifacts
from eop.knowledge import note_path
from eop.leaderboard import entry_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from eop.project.project import Project
    from eop.runtime.state import State

# Files that DVC adds beside an entry's own later; they are pointers, not results.
_OF_DVC = (".dvc", ".lock", ".gitignore")


def published_files(project: Project, entries: Sequence[str]) -> list[FileRef]:
    """References of the entries' files and notes, of the split and of the pinned snapshot."""
    return [FileRef.of(path, project.root) for path in _paths(project, entries)]


def published_problems(project: Project, state: State) -> list[str]:
    """What is missing or has changed since an iteration of the run was published."""
    artifacts = Artifacts(project, state)
    found: dict[str, None] = {}
    for iteration in range(1, state.iteration + 1):
        rows = artifacts.of_function("publish", iteration)
        refs = read_json(rows)["files"] if rows else []
        found |= dict.fromkeys(problems(map(FileRef.from_json, refs), project.root))
    return list(found)


def _paths(project: Project, entries: Sequence[str]) -> Iterator[Path]:
    for entry in entries:
        folder = entry_folder(project.root, entry)
        yield from sorted(p for p in folder.iterdir() if not p.name.endswith(_OF_DVC))
        yield note_path(project.root, entry)
    yield from sorted(project.split_dir.glob("*.parquet"))
    yield project.snapshot
