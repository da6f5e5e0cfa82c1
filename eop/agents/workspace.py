"""The folder of one attempt: a fresh one-commit tree, read-only inputs, a home of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from itertools import islice, takewhile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from eop.agents import patch
from eop.agents.contract import Prior, Recording
from eop.agents.stream import is_readable
from eop.agents.target import outside
from eop.core.canonical import file_digest
from eop.core.errors import EopError, Where
from eop.core.files import write_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

# More session files than any product keeps; a walk of more is the agent's joke.
_MOST_FILES = 10_000


@dataclass(frozen=True)
class Workspace:
    """Paths of an attempt's folder. The runtime's store is never below it."""

    directory: Path

    @property
    def tree(self) -> Path:
        """The files that the agent works on; its current directory."""
        return self.directory / "workspace"

    @property
    def outputs(self) -> Path:
        """Where the agent leaves the files that are asked of it."""
        return self.directory / "outputs"

    @property
    def inputs(self) -> Path:
        """Read-only copies of earlier artifacts."""
        return self.directory / "inputs"

    @property
    def home(self) -> Path:
        """``HOME`` of the attempt."""
        return self.directory / "home"

    @property
    def tmp(self) -> Path:
        """``TMPDIR`` of the attempt."""
        return self.directory / "tmp"

    @property
    def prompt(self) -> Path:
        """The task text; the product's standard input."""
        return self.directory / "prompt.md"

    @property
    def request(self) -> Path:
        """The request as JSON."""
        return self.directory / "request.json"

    def recording(self, sessions: Iterable[str] = (), rc: int | None = None) -> Recording:
        """What the product left of its run; ``sessions`` are globs below ``home``.

        No link is followed: behind one there could be the sessions of somebody else.
        """
        found = sorted({path for glob in sessions for path in _matches(self.home, glob)})
        own = tuple(path for path in found if is_readable(path))
        return Recording(self.directory / "stdout", self.directory / "stderr", own, rc)


def _matches(root: Path, glob: str) -> Iterator[Path]:
    """The files that a glob means, found by a walk below its fixed part."""
    fixed = list(takewhile(lambda part: "*" not in part, PurePosixPath(glob).parts[:-1]))
    start = root
    for part in fixed:
        start /= part
        # Unlike Path's, this one takes a folder that the agent has shut for none.
        if os.path.islink(start):  # noqa: PTH114
            return
    walk = ((Path(folder), name) for folder, _, names in os.walk(start) for name in names)
    for folder, name in islice(walk, _MOST_FILES):
        path = folder / name
        if not outside([glob], [path.relative_to(root).as_posix()]):
            yield path


def create(
    directory: Path, store: Path, tree: str, inputs: Mapping[str, Path], prompt: str
) -> tuple[Workspace, tuple[Prior, ...]]:
    """Lay out a new attempt folder with the files of ``tree`` and copies of ``inputs``.

    The folder must not exist: an attempt that was cut short is never reused. Returns the folder
    and the copies with their digests, in name order.
    """
    space = Workspace(directory)
    try:
        directory.mkdir(parents=True)
    except FileExistsError:
        raise EopError(
            "EOP855", "an attempt's folder is never reused", where=Where(str(directory))
        ) from None
    patch.export(store, tree, space.tree)
    _commit_once(space.tree)
    for folder in (space.outputs, space.inputs, space.home, space.tmp):
        folder.mkdir()
    priors = tuple(_copy(space, name, inputs[name]) for name in sorted(inputs))
    write_text(space.prompt, prompt)
    return space, priors


def _copy(space: Workspace, name: str, source: Path) -> Prior:
    target = space.inputs / f"{name}{source.suffix}"
    shutil.copyfile(source, target)
    target.chmod(0o444)
    return Prior(name, target, file_digest(target))


def _commit_once(tree: Path) -> None:
    """Give the tree a history of one commit, before any agent has touched it."""
    env = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(tree),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": str(tree.parent.resolve()),
        **{f"GIT_{who}_NAME": "base" for who in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{who}_EMAIL": "base@localhost" for who in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{who}_DATE": "2000-01-01T00:00:00Z" for who in ("AUTHOR", "COMMITTER")},
    }
    for arguments in (
        ["init", "-q", "--template=", "-b", "main"],
        ["add", "-A", "-f"],
        ["commit", "-q", "--allow-empty", "-m", "base"],
    ):
        done = subprocess.run(
            ["git", "-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0", *arguments],
            cwd=tree, env=env, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise EopError(
                "EOP856", f"git {arguments[0]}: {done.stderr.strip()}", where=Where(str(tree))
            )
