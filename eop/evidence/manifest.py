"""A file named by what is in it: path, sha256 and size."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from eop.core.canonical import file_digest
from eop.core.errors import EopError, ExitCode, Where

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


@dataclass(frozen=True)
class FileRef:
    """A file below some root: POSIX path relative to it, hex sha256, size in bytes."""

    path: str
    sha256: str
    size: int

    @classmethod
    def of(cls, path: Path, root: Path) -> FileRef:
        """The reference of an existing file; ``EOP641`` when it is missing or outside ``root``."""
        try:
            relative = path.resolve().relative_to(root.resolve()).as_posix()
            return cls(relative, file_digest(path), path.stat().st_size)
        except (OSError, ValueError) as error:
            raise EopError(
                "EOP641",
                f"cannot take the digest of this file: {error}",
                where=Where(str(path)),
                hint=f"it must be a readable file below {root}",
                exit_code=ExitCode.DATA,
            ) from error

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> FileRef:
        """The inverse of ``to_json``."""
        return cls(data["path"], data["sha256"], data["size"])

    def to_json(self) -> dict[str, Any]:
        """Plain data: ``{path, sha256, size}``."""
        return asdict(self)

    def check(self, root: Path) -> list[str]:
        """What differs between this reference and the file below ``root``; empty when nothing."""
        path = root / self.path
        if not path.is_file():
            return [f"{self.path}: missing"]
        size = path.stat().st_size
        if size != self.size:
            return [f"{self.path}: {size} bytes, recorded {self.size}"]
        found = file_digest(path)
        if found != self.sha256:
            return [f"{self.path}: sha256 {found[:16]}…, recorded {self.sha256[:16]}…"]
        return []


def problems(refs: Iterable[FileRef], root: Path) -> list[str]:
    """The problems of all ``refs``, one line each, in their order."""
    return [line for ref in refs for line in ref.check(root)]
