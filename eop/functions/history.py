"""A pinned snapshot that neither this clone nor a remote holds, found again in git's history."""

from __future__ import annotations

import hashlib
import io
import subprocess
import tarfile
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from eop.agents.target import load
from eop.core.archives import pack

if TYPE_CHECKING:
    from pathlib import Path


def from_history(root: Path, sha256: str) -> bytes | None:
    """The snapshot of this digest, packed from a commit whose files give it.

    Every commit of every branch that changed what a target of the project pins is tried, the
    newest first. ``None`` without git, and when no commit gives it: a tree that was pinned with
    changes that were never committed.
    """
    for config in sorted((root / "config" / "targets").glob("*.yaml")):
        paths = load(config).snapshot
        listed = _git(root, "log", "--all", "--full-history", "--format=%H", "--", *paths)
        for commit in (listed or b"").decode().split():
            archive = _git(root, "archive", "--format=tar", commit, "--", *paths)
            # A commit that lacks one of the paths is no snapshot of the target.
            content = None if archive is None else _packed(archive)
            if content is not None and hashlib.sha256(content).hexdigest() == sha256:
                return content
    return None


def _packed(archive: bytes) -> bytes:
    """The files of git's archive as a snapshot holds them: its order, no owner, mode or time."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as stream:
        files = {
            PurePosixPath(member.name): content.read()
            for member in stream
            if member.isfile() and (content := stream.extractfile(member))
        }
    return pack((path.as_posix(), files[path]) for path in sorted(files))


def _git(root: Path, *arguments: str) -> bytes | None:
    """What git prints; ``None`` when it is not there or fails."""
    try:
        done = subprocess.run(
            ["git", *arguments],
            cwd=root,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except OSError:
        return None
    return None if done.returncode else done.stdout
