"""Files that are whole or absent: every write goes to a temporary name, is synced and renamed."""

from __future__ import annotations

import errno
import json
import os
import secrets
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from eop.core.errors import EopError, ExitCode, Where

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


_MENDABLE = {
    errno.ENOSPC: "make room",
    errno.EDQUOT: "make room: the quota is used up",
    errno.EFBIG: "make room: no file may be as long here",
    errno.EROFS: "make the file system writable",
    errno.EACCES: "let the user of this process write there",
    errno.EPERM: "let the user of this process write there",
}


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Name the place and the remedy when ``path`` cannot be written: EOP703, exit 9.

    For a full disk, a used-up quota, a read-only folder; any other fault stays what it is.
    """
    try:
        yield
    except OSError as error:
        remedy = _MENDABLE.get(error.errno or 0)
        if remedy is None:
            raise
        raise EopError(
            "EOP703",
            f"cannot be written: {os.strerror(error.errno or 0)}",
            where=Where(str(path)),
            hint=f"{remedy}, and run the same command again: finished work is kept",
            exit_code=ExitCode.ENVIRONMENT,
        ) from error


def write_bytes(path: Path, content: bytes) -> None:
    """Write ``content`` to ``path`` atomically; parents are made. EOP703 when that cannot be."""
    with writing(path):
        _write(path, content)


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Not mkstemp: it makes 0600, and a project's files follow the user's umask, which can be read
    # by setting it alone. Threads share it.
    name = path.parent / f".{path.name}.{secrets.token_hex(6)}.tmp"
    handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        name.replace(path)
    except BaseException:
        name.unlink(missing_ok=True)
        raise


def write_text(path: Path, content: str) -> None:
    """Write UTF-8 text atomically."""
    write_bytes(path, content.encode())


def dumps(value: Any) -> str:
    """Readable JSON text: sorted keys, two spaces, final newline; NaN is refused."""
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def write_json(path: Path, value: Any) -> None:
    """Write ``dumps(value)`` atomically."""
    write_text(path, dumps(value))


def write_if_changed(path: Path, content: str) -> bool:
    """Write text only when it differs from what is there; say whether it was written."""
    if path.is_file() and path.read_text() == content:
        return False
    write_text(path, content)
    return True


def read_json(path: Path) -> Any:
    """Parse a JSON file; a missing or broken one is an error that names the place."""
    if path.exists() and not path.is_file():
        # A folder, or a pipe that would be waited for without end.
        raise EopError(
            "EOP701", "it is not a regular file", where=Where(str(path)), exit_code=ExitCode.STATE
        )
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        raise EopError(
            "EOP701", "file is missing", where=Where(str(path)), exit_code=ExitCode.STATE
        ) from None
    except json.JSONDecodeError as error:
        raise EopError(
            "EOP702",
            f"not valid JSON: {error.msg}",
            where=Where(str(path), error.lineno, error.colno),
            exit_code=ExitCode.STATE,
        ) from error
    except UnicodeDecodeError as error:
        raise EopError(
            "EOP702", "not UTF-8 text", where=Where(str(path)), exit_code=ExitCode.STATE
        ) from error
