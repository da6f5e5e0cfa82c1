"""What goes into git after an iteration: printed, and committed only when the config says so."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from eop.core.errors import EopError, ExitCode, Where
from eop.knowledge.pages import WIKI
from eop.leaderboard.board import BOARD, TEMPLATE_FOLDER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eop.project.project import Project

# What a writer that was killed has left beside the file that it wrote.
_NO_LEFTOVERS = ":(exclude,glob)**/.*.tmp"
_TRACKED = ("leaderboard", "knowledge", "data", TEMPLATE_FOLDER)


def commit_or_print(project: Project, entries: Sequence[str], pointers: Sequence[str]) -> None:
    """Commit these entries, their notes and DVC ``pointers``, or print how to.

    A person's branch is theirs: without ``commit: true`` in the config nothing touches it, and
    with it only the files of these entries, the wiki and what DVC shows are committed. Raises
    ``EopError`` (EOP660) with git's own words when git refuses.
    """
    message = f"leaderboard: {', '.join(entries)}"
    if not project.config.commit:
        tops = [name for name in _TRACKED if (project.root / name).is_dir()]
        print(f"to keep this iteration: git add {' '.join(tops)} && git commit -m '{message}'")
        return
    paths = [path for path in _paths(entries, pointers) if (project.root / path).exists()]
    paths += [f"{WIKI}/{page.name}" for page in sorted((project.root / WIKI).glob("*.md"))]
    if not paths:
        return
    paths.append(_NO_LEFTOVERS)
    _git(project, "add", "--", *paths)
    changed = _git(project, "diff", "--cached", "--name-only", "--", *paths)
    if changed.strip():
        _git(project, "commit", "--quiet", "-m", message, "--", *paths)


def _paths(entries: Sequence[str], pointers: Sequence[str]) -> list[str]:
    """What an iteration adds, relative to the root; DVC names its data in ``.gitignore`` files."""
    found = [path for entry in entries for path in _of_entry(entry)] + [BOARD, TEMPLATE_FOLDER]
    for pointer in pointers:
        folder = pointer.rpartition("/")[0]
        found += [pointer, f"{folder}/.gitignore", f"{folder}/manifest.json"]
    return list(dict.fromkeys(found))


def _of_entry(entry: str) -> tuple[str, str]:
    return f"leaderboard/{entry}", f"knowledge/notes/{entry}.md"


def _git(project: Project, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments],
        cwd=project.root,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise EopError(
            "EOP660",
            f"git {arguments[0]}: {done.stderr.strip()}",
            where=Where(str(project.root)),
            hint="set `commit: false` to have it printed instead",
            exit_code=ExitCode.ENVIRONMENT,
        )
    return done.stdout
