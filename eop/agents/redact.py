"""Secrets in what an agent leaves: found, and taken out of every file that is kept."""

from __future__ import annotations

import json
import mmap
import os
import re
import shutil
import stat
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

MARK = b"[redacted]"
# A key of a model's service, whoever's it is: a long word with a digit, which prose has not. It
# starts with what is literal, which makes the search a quick one.
_KEY = re.compile(rb"sk-(?<![\w-]sk-)(?=[\w-]*\d)[\w-]{20,512}")
# Shorter words would be found everywhere; no service gives out such a token.
_SHORTEST = 8
_LONGEST_FILE = 256 << 20
_COPY = 1 << 20


class Redactor:
    """Knows the secrets of one attempt, and the looks of keys in general.

    A secret is found as it is, and as JSON and URLs write it; no further disguise is seen through.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = [secret for secret in secrets if len(secret) >= _SHORTEST]
        written = {form.encode() for one in known for form in _forms(one)}
        self._words = sorted(written, key=len, reverse=True)
        self._pattern = re.compile(b"|".join([*map(re.escape, self._words), _KEY.pattern]))

    def finds(self, content: bytes | str | mmap.mmap) -> bool:
        """Whether there is a secret in it."""
        held = content.encode(errors="surrogateescape") if isinstance(content, str) else content
        return any(held.find(word) >= 0 for word in self._words) or bool(_KEY.search(held))

    def text(self, said: str) -> str:
        """The same with a mark in the place of each secret."""
        cleaned = self._pattern.sub(MARK, said.encode(errors="surrogateescape"))
        return cleaned.decode(errors="surrogateescape")

    def file(self, path: Path) -> bool:
        """Take the secrets out of a file, all at once or not at all; whether there were any.

        One that is too big to be looked through is removed, and counts as one with secrets.
        """
        size = path.lstat().st_size
        if size > _LONGEST_FILE:
            path.unlink()
            return True
        if size == 0:
            return False
        with (
            path.open("rb") as stream,
            mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content,
        ):
            if not self.finds(content):
                return False
            handle, name = tempfile.mkstemp(prefix=".redacted.", dir=path.parent)
            with os.fdopen(handle, "wb") as target:
                self._copy(content, target)
            shutil.copymode(path, name)
            Path(name).replace(path)
        return True

    def tree(self, root: Path, spare: Container[Path] = ()) -> list[Path]:
        """Take the secrets out of all that lies below a folder: files, links and names.

        ``spare`` are left as they are. Nothing is followed; no process that could change it may be
        alive. What the agent has shut is opened. Returns what had a secret, by its present name.
        """
        found: list[Path] = []
        if root.is_symlink() or not root.is_dir():
            return found
        _open(root, root.lstat().st_mode)
        for folder, subfolders, files in os.walk(root):
            # The walk goes on by these names.
            subfolders[:] = [self._entry(Path(folder, name), found) for name in subfolders]
            for path in (Path(folder, name) for name in files):
                if path not in spare:
                    self._entry(path, found)
        return found

    def _entry(self, path: Path, found: list[Path]) -> str:
        mode = path.lstat().st_mode
        named = self.finds(path.name)
        if named:
            path = path.rename(_free(path.with_name(self.text(path.name))))
        if stat.S_ISLNK(mode):
            held = self.finds(os.fsencode(path.readlink()))
            if held:
                path.unlink()
        else:
            _open(path, mode)
            held = stat.S_ISREG(mode) and self.file(path)
        if named or held:
            found.append(path)
        return path.name

    def _copy(self, content: mmap.mmap, target: BinaryIO) -> None:
        done = 0
        for match in self._pattern.finditer(content):
            _write(content, done, match.start(), target)
            target.write(MARK)
            done = match.end()
        _write(content, done, len(content), target)


def _write(content: mmap.mmap, start: int, end: int, target: BinaryIO) -> None:
    for place in range(start, end, _COPY):
        target.write(content[place : min(place + _COPY, end)])


def _open(path: Path, mode: int) -> None:
    needed = 0o700 if stat.S_ISDIR(mode) else 0o400
    if mode & needed != needed:
        path.chmod(stat.S_IMODE(mode) | needed)


def _free(path: Path) -> Path:
    while os.path.lexists(path):
        path = path.with_name(path.name + "_")
    return path


def _forms(secret: str) -> Iterable[str]:
    return secret, json.dumps(secret)[1:-1], quote(secret, safe="")
