"""A row's stored objects as one file beside its entry, which DVC takes wherever the row goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eop.core.archives import members, pack
from eop.core.errors import EopError, ExitCode, Where
from eop.core.files import write_bytes
from eop.evidence.objects import ObjectStore
from eop.leaderboard import entry_folder

if TYPE_CHECKING:
    from pathlib import Path

FILE = "evidence.tar"


def archive_path(root: Path, entry_id: str) -> Path:
    """Where the archive of an entry lies; DVC has it where git alone was cloned."""
    return entry_folder(root, entry_id) / FILE


def write_archive(root: Path, entry_id: str, manifest: dict[str, Any]) -> None:
    """Pack every object that the manifest names; equal manifests give equal bytes."""
    store = ObjectStore.of(root)
    content = pack((digest, store.get(digest)) for digest in _stored(manifest))
    path = archive_path(root, entry_id)
    if not path.is_file() or path.read_bytes() != content:
        write_bytes(path, content)


def restore(root: Path, entry_id: str, manifest: dict[str, Any]) -> int:
    """Put the manifest's objects back into the store; how many were missing or had rotted.

    Raises ``EopError``: EOP649 when the archive is not there or lacks one of them, EOP621 when it
    cannot be read.
    """
    store, path = ObjectStore.of(root), archive_path(root, entry_id)
    lost = {digest for digest in _stored(manifest) if store.check(digest)}
    if not lost:
        return 0
    if not path.is_file():
        raise _missing(path, "it is not there")
    # An object is named by its bytes, whatever a member calls itself.
    found = lost & {store.put(content) for name, content in members(path) if name in lost}
    if found != lost:
        raise _missing(path, f"it lacks {len(lost - found)} of the row's objects")
    return len(found)


def _stored(manifest: dict[str, Any]) -> list[str]:
    return sorted({file["sha256"] for file in manifest["files"] if file["stored"]})


def _missing(path: Path, message: str) -> EopError:
    return EopError(
        "EOP649",
        message,
        where=Where(str(path)),
        hint=f"bring it with: dvc pull leaderboard/{path.parent.name}/{FILE}.dvc",
        exit_code=ExitCode.DATA,
    )
