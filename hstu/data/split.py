"""Leave-one-out splits: stable order, separate files, frozen by digests.

Events are ordered by user and timestamp, ties by file order. A user's last event is the test
target, the one before it the validation target, all others are for training.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from hstu.data import checks
from hstu.data.errors import HstuError
from hstu.data.files import (
    new_folder,
    read_integers,
    read_json,
    sha256,
    write_json,
    write_table,
)
from hstu.data.readers import Interactions

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from hstu.data.readers import RawData

SCHEMA = "hstu.split/1"
MANIFEST = "manifest.json"
PARTS = ("train", "validation", "test")
FILES = (*(f"{part}.parquet" for part in PARTS), "items.parquet")
# Of the same files in the hands of DVC; a clone has these before it has the split.
_POINTERS = (*(f"{name}.dvc" for name in FILES), ".gitignore")

Target = Literal["validation", "test"]


@dataclass(frozen=True)
class SplitOptions:
    """What to do with events that occur twice and users with fewer than three events."""

    allow_duplicates: bool = False
    drop_short_users: bool = False


def leave_one_out(interactions: Interactions) -> dict[str, Interactions]:
    """Split into ``train``, ``validation`` and ``test``, each by user, then time, then file order.

    Every user must have at least three events.
    """
    # The file order is the last key, since lexsort is stable.
    order = np.lexsort((interactions.timestamps, interactions.users))
    ordered = interactions.take(order)
    left = _events_left(ordered.users)
    return {
        "train": ordered.take(left >= 2),
        "validation": ordered.take(left == 1),
        "test": ordered.take(left == 0),
    }


def write_split(raw: RawData, dataset: str, out: Path, options: SplitOptions) -> dict[str, Any]:
    """Split ``raw`` into the folder ``out`` and return its manifest.

    The folder appears whole or not at all. The same data again changes nothing; other data in a
    folder that holds a split is refused, since results may refer to it. DVC's pointers to a
    split's files stay beside them.
    """
    interactions, dropped = _checked(raw, options)
    _refuse_foreign_folder(out)
    with new_folder(out) as folder:
        for part, events in leave_one_out(interactions).items():
            columns = [events.users, events.items, events.timestamps]
            names = ["user_id", "item_id", "timestamp"]
            write_table(folder / f"{part}.parquet", pa.table(columns, names=names))
        raw.items.write(folder / "items.parquet")
        counts = {
            "users": len(np.unique(interactions.users)),
            "items": len(raw.items),
            "events": len(interactions),
            "dropped_users": len(dropped),
        }
        manifest = _manifest(folder, dataset, counts)
        write_json(folder / MANIFEST, manifest)
        _refuse_other_split(out, manifest)
        for pointer in (out / name for name in _POINTERS):
            if pointer.is_file():
                shutil.copy2(pointer, folder)
    return manifest


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a split; an ``HstuError`` when it is missing, of another kind or edited."""
    path = folder / MANIFEST
    if not path.is_file():
        raise HstuError(
            "no split here: manifest.json is missing",
            where=str(folder),
            hint="make one with: python -m hstu data split --source DIR --out DIR",
        )
    manifest = read_json(path)
    if manifest.get("schema") != SCHEMA:
        raise HstuError(f"schema is {manifest.get('schema')!r}, not {SCHEMA!r}", where=str(path))
    files = manifest.get("files")
    if not isinstance(files, dict) or set(files) != set(FILES):
        raise HstuError(f"files must be: {', '.join(FILES)}", where=str(path))
    if manifest.get("digest") != _digest(manifest):
        raise HstuError("the manifest was changed: its digest does not fit", where=str(path))
    return manifest


def check_split(folder: Path, names: Sequence[str] = FILES) -> dict[str, Any]:
    """Verify the bytes of ``names`` against the manifest, and return the manifest."""
    manifest = read_manifest(folder)
    for name in names:
        path = folder / name
        if not path.is_file():
            raise HstuError("a file of the split is missing", where=str(path), hint=_AGAIN)
        if sha256(path) != manifest["files"][name]["sha256"]:
            raise HstuError("the file differs from its manifest", where=str(path), hint=_AGAIN)
    return manifest


def read_events(folder: Path, part: str) -> Interactions:
    """The events of ``train``, ``validation`` or ``test``, in the order of the file."""
    columns = ["user_id", "item_id", "timestamp"]
    return Interactions(*read_integers(folder / f"{part}.parquet", columns))


_AGAIN = "remove the folder and make the split again"


def _events_left(users: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each event [E] of grouped users, how many events of the same user follow."""
    last = np.flatnonzero(np.append(users[1:] != users[:-1], True))
    lengths = np.diff(last, prepend=-1)
    return np.repeat(last, lengths) - np.arange(len(users))


def _checked(raw: RawData, options: SplitOptions) -> tuple[Interactions, NDArray[np.int64]]:
    """The events to split and the users that were left out."""
    if not options.allow_duplicates:
        checks.refuse_repeated_events(raw.interactions, raw.place)
    if options.drop_short_users:
        return checks.drop_short_users(raw.interactions)
    checks.refuse_short_users(raw.interactions, raw.place)
    return raw.interactions, np.empty(0, np.int64)


def _manifest(folder: Path, dataset: str, counts: dict[str, int]) -> dict[str, Any]:
    files = {
        name: {"sha256": sha256(folder / name), "size": (folder / name).stat().st_size}
        for name in FILES
    }
    manifest: dict[str, Any] = {"schema": SCHEMA, "dataset": dataset, **counts, "files": files}
    return {**manifest, "digest": _digest(manifest)}


def _digest(manifest: dict[str, Any]) -> str:
    """SHA-256 of the manifest without its digest, as compact JSON with sorted keys."""
    rest = {name: value for name, value in manifest.items() if name != "digest"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _refuse_foreign_folder(out: Path) -> None:
    """Only a folder with nothing but files of a split may be replaced."""
    if not out.exists():
        return
    if not out.is_dir():
        raise HstuError("the split must be a folder, a file is there", where=str(out))
    known = {*FILES, MANIFEST, *_POINTERS}
    strangers = sorted(path.name for path in out.iterdir() if path.name not in known)
    if strangers:
        raise HstuError(
            f"the folder holds other files: {', '.join(strangers[:5])}",
            where=str(out),
            hint="name a new folder",
        )


def _refuse_other_split(out: Path, manifest: dict[str, Any]) -> None:
    if not (out / MANIFEST).is_file():
        return
    there = read_manifest(out)
    if there["digest"] != manifest["digest"]:
        raise HstuError(
            f"another split of {there['dataset']} is here",
            where=str(out),
            hint="splits are frozen, since results refer to them: name a new folder, "
            "or remove this one",
        )
