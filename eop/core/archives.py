"""Archives of plain files: equal contents give equal bytes."""

from __future__ import annotations

import io
import tarfile
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from eop.core.errors import EopError, ExitCode, Where

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


def pack(members: Iterable[tuple[str, bytes]]) -> bytes:
    """A tar of ``members`` in their order; owner, mode and time are fixed."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            member.mode = 0o644
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def members(archive: Path) -> Iterator[tuple[str, bytes]]:
    """Name and content of each file of a tar.

    Raises ``EopError`` (EOP621) when it cannot be read, or holds anything that is no plain file
    below the folder that it is unpacked in.
    """
    try:
        with tarfile.open(archive, mode="r:") as stream:
            for member in stream:
                content = stream.extractfile(member)
                inside = not member.name.startswith("/") and ".." not in _parts(member.name)
                if content is None or not inside:
                    raise _bad(archive, f"it holds plain files only, not '{member.name}'")
                yield member.name, content.read()
    except tarfile.TarError as error:
        raise _bad(archive, f"it cannot be read: {error}") from error


def _parts(name: str) -> tuple[str, ...]:
    return PurePosixPath(name).parts


def _bad(archive: Path, message: str) -> EopError:
    return EopError(
        "EOP621",
        f"not a valid archive: {message}",
        where=Where(str(archive)),
        exit_code=ExitCode.DATA,
    )
