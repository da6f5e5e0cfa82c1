"""What goes into git after an iteration: printed, and committed only when the config says so."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from eop.core.errors import EopError, ExitCode, Where

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eop.project.project import Project

_TRACKED = ("leaderboard", "knowledge", "data")


def commit_or_print(project: Project, entries: Sequence[str]) -> None:
    """Commit leaderboard, notes and DVC pointers (config ``commit: true``), or print how to.

    A person's branch is theirs: by default nothing touches it.
    """
    message = f"leaderboard: {', '.join(entries)}"
    paths = [name for name in _TRACKED if (project.root / name).is_dir()]
    if not project.config.commit:
        print(f"to keep this iteration: git add {' '.join(paths)} && git commit -m '{message}'")
        return
    _git(project, "add", "--", *paths)
    changed = _git(project, "diff", "--cached", "--name-only", "--", *paths)
    if changed.strip():
        _git(project, "commit", "--quiet", "-m", message, "--", *paths)


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
