"""Committed files: taken into the state with digest and size, checked against them later."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

from eop.core.canonical import file_digest
from eop.core.errors import EopError, ExitCode, Where
from eop.runtime.node import Artifact

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_RESTORE = "restore the file; `eop verify` lists all that changed since it was committed"


def commit(root: Path, name: str, path: Path) -> Artifact:
    """Describe the file that a node left; ``ValueError`` says why it cannot be committed.

    It must be a regular file that lies, links resolved, below ``root``.
    """
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise ValueError(f"output '{name}' is missing: {path.name}") from None
    if not stat.S_ISREG(mode):
        raise ValueError(f"output '{name}' is not a regular file: {path.name}")
    base = root.resolve()
    real = path.resolve()
    if not real.is_relative_to(base):
        raise ValueError(f"output '{name}' lies outside the project: {path}")
    relative = real.relative_to(base).as_posix()
    return Artifact(name, relative, file_digest(real), real.stat().st_size)


def changed(root: Path, artifact: Artifact) -> str | None:
    """In which way the file differs from what was committed; ``None`` when it does not."""
    path = root / artifact.path
    try:
        status = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return f"artifact '{artifact.name}' is missing: {artifact.path}"
    same_size = stat.S_ISREG(status.st_mode) and status.st_size == artifact.size
    if same_size and file_digest(path) == artifact.sha256:
        return None
    return f"artifact '{artifact.name}' is not what was committed: {artifact.path}"


def check(root: Path, artifacts: Iterable[Artifact], hint: str = _RESTORE) -> None:
    """Raise ``EopError`` (EOP734, exit 7) at the first file that is not what was committed."""
    for artifact in artifacts:
        problem = changed(root, artifact)
        if problem:
            raise EopError(
                "EOP734",
                f"tampered: {problem}",
                where=Where(artifact.path),
                hint=hint,
                exit_code=ExitCode.STATE,
            )
