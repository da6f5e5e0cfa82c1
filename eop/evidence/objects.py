"""A store of files by what is in them: ``evidence/objects/ab/cdef…``, each written once."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eop.core.canonical import file_digest
from eop.core.errors import EopError, ExitCode, Where
from eop.core.files import write_bytes

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = "evidence/objects"


@dataclass(frozen=True)
class ObjectStore:
    """The objects below ``folder``, named by the sha256 of their bytes."""

    folder: Path

    @classmethod
    def of(cls, root: Path) -> ObjectStore:
        """The store of the project at ``root``."""
        return cls(root / FOLDER)

    def put(self, content: bytes) -> str:
        """Keep ``content`` and return its digest; an object that has rotted is made whole."""
        digest = hashlib.sha256(content).hexdigest()
        path = self.path(digest)
        if not path.is_file() or file_digest(path) != digest:
            write_bytes(path, content)
        return digest

    def get(self, digest: str) -> bytes:
        """The bytes of an object; ``EOP647`` when it is lost or has rotted."""
        if problem := self.check(digest):
            raise EopError(
                "EOP647", problem, where=Where(str(self.path(digest))), exit_code=ExitCode.DATA
            )
        return self.path(digest).read_bytes()

    def check(self, digest: str) -> str | None:
        """What is wrong with an object, ``None`` when it is whole."""
        path = self.path(digest)
        if not path.is_file():
            return f"object {digest[:16]}…: missing"
        return None if file_digest(path) == digest else f"object {digest[:16]}…: its bytes rotted"

    def path(self, digest: str) -> Path:
        """Where an object lies."""
        return self.folder / digest[:2] / digest[2:]
