"""A look at a hostile directory that follows nothing: what may enter a tree, and what may not."""

from __future__ import annotations

import os
import stat
import unicodedata
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PLAIN, PROGRAM, LINK = "100644", "100755", "120000"
_IGNORED_FOLDERS = frozenset({"__pycache__"})
_IGNORED_SUFFIX = ".pyc"


@dataclass(frozen=True)
class Caps:
    """What a tree may hold (its largest file, all its bytes, its files) and a patch may change."""

    file_bytes: int = 8 << 20
    tree_bytes: int = 256 << 20
    files: int = 20_000
    patch_bytes: int = 4 << 20
    patch_files: int = 1_000


@dataclass(frozen=True)
class Entry:
    """A file of a tree: path relative to its root, with forward slashes, and git's mode."""

    path: str
    mode: str


@dataclass(frozen=True)
class Scan:
    """What a directory holds: ``entries`` fit for a tree, in path order, and ``problems``."""

    entries: tuple[Entry, ...]
    problems: tuple[str, ...]


def scan(directory: Path, caps: Caps | None = None) -> Scan:
    """Walk ``directory`` with ``lstat``; the root's ``.git`` folder and bytecode are passed over.

    Problems, one line each: nested ``.git``, links out of the tree, hard links, fifos, sockets
    and devices, files over the cap, too many files or bytes, names that are no clean UTF-8.
    """
    caps = caps or Caps()
    entries: list[Entry] = []
    problems: list[str] = []
    total = 0
    for path, status in _walk(directory, problems):
        relative = path.relative_to(directory).as_posix()
        problem = _problem(directory, path, relative, status, caps)
        if problem:
            problems.append(problem)
        elif not relative.endswith(_IGNORED_SUFFIX):
            entries.append(Entry(relative, _mode(status)))
            total += status.st_size
        if len(entries) > caps.files:
            problems.append(f"more than {caps.files} files")
            break
        if total > caps.tree_bytes:
            problems.append(f"more than {caps.tree_bytes} bytes")
            entries.pop()
            break
    entries.sort(key=lambda entry: entry.path)
    return Scan(tuple(entries[: caps.files]), tuple(problems))


def _walk(root: Path, problems: list[str]) -> Iterator[tuple[Path, os.stat_result]]:
    pending = [root]
    while pending:
        folder = pending.pop()
        try:
            children = sorted(os.scandir(folder), key=lambda child: child.name)
        except PermissionError:
            problems.append(f"{_shown(folder.relative_to(root))}: folder cannot be read")
            continue
        for child in children:
            path, status = Path(child.path), child.stat(follow_symlinks=False)
            if child.name.lower() == ".git":
                if folder != root or not stat.S_ISDIR(status.st_mode):
                    problems.append(f"{_shown(path.relative_to(root))}: nested git repository")
            elif not stat.S_ISDIR(status.st_mode):
                yield path, status
            elif child.name not in _IGNORED_FOLDERS:
                pending.append(path)


def _problem(
    root: Path, path: Path, relative: str, status: os.stat_result, caps: Caps
) -> str | None:
    if not _clean(relative):
        return f"{_shown(relative)}: file name is not clean UTF-8"
    if stat.S_ISLNK(status.st_mode):
        return _link_problem(root, path, relative)
    if not stat.S_ISREG(status.st_mode):
        return f"{relative}: neither a file nor a link"
    if status.st_nlink > 1:
        return f"{relative}: hard link"
    if status.st_size > caps.file_bytes:
        return f"{relative}: {status.st_size} bytes, over the cap of {caps.file_bytes}"
    if not os.access(path, os.R_OK):
        return f"{relative}: file cannot be read"
    return None


def _link_problem(root: Path, path: Path, relative: str) -> str | None:
    target = os.readlink(path)  # noqa: PTH115 - the raw text, before Path tidies it
    if not _clean(target) or path.name.lower().startswith(".git"):
        return f"{relative}: link that git would not store"
    place = os.path.normpath(PurePosixPath(path.relative_to(root).parent, target))
    if PurePosixPath(target).is_absolute() or place == ".." or place.startswith("../"):
        return f"{relative}: link out of the tree, to {target}"
    return None


def _clean(name: str) -> bool:
    return _encodes(name) and not any(unicodedata.category(sign) == "Cc" for sign in name)


def _encodes(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _mode(status: os.stat_result) -> str:
    if stat.S_ISLNK(status.st_mode):
        return LINK
    return PROGRAM if status.st_mode & stat.S_IXUSR else PLAIN


def _shown(path: Path | str) -> str:
    return ascii(str(path))[1:-1]
