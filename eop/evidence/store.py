"""Reads a DVC store object by object. DVC itself trusts read-only objects without reading them.

The layout is public and needs no DVC: ``files/md5/ab/cdef…``, a folder's listing ends in ``.dir``.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_CHUNK = 1 << 20


@dataclass(frozen=True)
class StoreReport:
    """What reading every object of a store found; object ids are md5 hex, sorted.

    ``rotted``: the bytes are not what the name says. ``missing``: asked for, or listed by a
    folder object, and absent. ``temporary``: leftovers of an interrupted transfer (harmless).
    """

    store: str
    objects: int
    rotted: tuple[str, ...]
    missing: tuple[str, ...]
    temporary: int

    @property
    def sound(self) -> bool:
        """Nothing rotted and nothing missing."""
        return not self.rotted and not self.missing


def check_store(store: Path, expected: Iterable[str] = ()) -> StoreReport:
    """Read every object below ``store`` and compare it with its name; costs one pass of reading.

    ``expected`` are ids that must be there besides those that folder objects list.
    """
    have: set[str] = set()
    rotted: list[str] = []
    wanted = set(expected)
    temporary = 0
    for path in sorted((store / "files" / "md5").glob("??/*")):
        if path.name.startswith(".") or path.name.endswith(".tmp"):
            temporary += 1
            continue
        oid = path.parent.name + path.name
        have.add(oid)
        if md5_of(path) != oid.removesuffix(".dir"):
            rotted.append(oid)
        elif oid.endswith(".dir"):
            wanted.update(member["md5"] for member in json.loads(path.read_text()))
    missing = tuple(sorted(wanted - have))
    return StoreReport(str(store), len(have), tuple(sorted(rotted)), missing, temporary)


def object_path(store: Path, oid: str) -> Path:
    """Where a store keeps the object ``oid``."""
    return store / "files" / "md5" / oid[:2] / oid[2:]


def md5_of(path: Path) -> str:
    """Hex md5 of a file: DVC's name for its content, not a proof of anything."""
    hasher = hashlib.md5(usedforsecurity=False)
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            hasher.update(chunk)
    return hasher.hexdigest()
