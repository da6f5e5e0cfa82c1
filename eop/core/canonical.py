"""Canonical JSON and sha256 digests: equal content, equal bytes, on every host."""

from __future__ import annotations

import hashlib
import json
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_CHUNK = 1 << 20
_ENCODER = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)


def plain(value: Any) -> Any:
    """Data as JSON holds it: tuples as lists, paths and keys as text."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return str(value) if isinstance(value, PurePath) else value


def canonical_json(value: Any) -> bytes:
    """``value`` as UTF-8 JSON with sorted keys and no spaces; NaN and infinity are refused."""
    return _ENCODER.encode(value).encode()


def digest(value: Any) -> str:
    """Hex sha256 of the canonical JSON of ``value``."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def file_digest(path: Path) -> str:
    """Hex sha256 of a file's bytes."""
    hasher = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            hasher.update(chunk)
    return hasher.hexdigest()


def tree_digest(root: Path, files: Iterable[Path]) -> str:
    """Digest of a set of files below ``root``: their relative names and contents."""
    entries = {path.relative_to(root).as_posix(): file_digest(path) for path in files}
    return digest(entries)
