"""Entries on disk. An entry is history: it appears whole, and never changes."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from typing import TYPE_CHECKING, Any

import yaml

from eop.core.errors import EopError, ExitCode, Where
from eop.core.files import write_bytes, writing
from eop.core.locks import exclusive
from eop.core.yaml_files import read_yaml
from eop.leaderboard.entry import Entry, entry_problems
from eop.leaderboard.stage import stage_text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SCHEMA_FILE = "config/schemas/entry.schema.yaml"
# Held by whoever writes below leaderboard/.
LOCK = "runs/.leaderboard.lock"
_GIVEN = ("patch.diff", "config.yaml", "curve.tsv", "curve-refit.tsv")
_NAMES = ("entry.yaml", "metrics.json", "dvc.yaml", *_GIVEN)


def entry_folder(root: Path, entry_id: str) -> Path:
    """``leaderboard/<id>`` of the project at ``root``."""
    return root / "leaderboard" / entry_id


def write_entry(root: Path, entry: Entry, files: Mapping[str, bytes]) -> Path:
    """Add ``entry`` to the leaderboard in one step and return its folder.

    ``files`` holds any of ``patch.diff``, ``config.yaml``, ``curve.tsv``, ``curve-refit.tsv``;
    ``entry.yaml``, ``metrics.json`` and, for a reproducible entry, ``dvc.yaml`` are made here.
    Writing the same entry again changes nothing. Raises ``EOP661`` when the entry breaks its
    schema, ``EOP662`` when a file is not what the evidence says, ``EOP663`` when another entry
    has this id.
    """
    content = _content(root, entry, files)
    folder = entry_folder(root, entry.id)
    with exclusive(root / LOCK, wait=True):
        if (folder / "entry.yaml").exists():
            _refuse_conflict(folder, content)
            return folder
        if folder.exists():
            _fill(folder, content)
        else:
            _appear(folder, content)
        _sync(folder.parent)
    return folder


def read_entry(root: Path, entry_id: str) -> Entry:
    """The entry of this id; ``EOP664`` when there is none, ``EOP661`` when it is broken."""
    return _read(entry_folder(root, entry_id) / "entry.yaml", _schema(root))


def read_entries(root: Path) -> list[Entry]:
    """All entries, by id. A broken one is an error (``EOP661``): no row vanishes in silence."""
    paths = sorted((root / "leaderboard").glob("[!.]*/entry.yaml"))
    if not paths:
        return []
    schema = _schema(root)
    return [_read(path, schema) for path in paths]


def metrics_agree(root: Path, entry: Entry) -> bool:
    """Whether ``metrics.json``, which DVC shows and plots, has the numbers of the entry."""
    shown = _bytes(entry_folder(root, entry.id) / "metrics.json")
    try:
        return shown is not None and json.loads(shown) == json.loads(_metrics(entry.to_json()))
    except ValueError:
        return False


def _appear(folder: Path, content: Mapping[str, bytes]) -> None:
    # A dot folder is no entry; one left by a killed writer is replaced.
    draft = folder.with_name(f".{folder.name}.tmp")
    if draft.exists():
        shutil.rmtree(draft)
    for name, data in content.items():
        write_bytes(draft / name, data)
    with writing(folder):
        draft.rename(folder)


def _fill(folder: Path, content: Mapping[str, bytes]) -> None:
    # Untracked weights outlive a change of git branch. What makes the entry comes last.
    for name in sorted(content, key=lambda name: name == "entry.yaml"):
        write_bytes(folder / name, content[name])


def _content(root: Path, entry: Entry, files: Mapping[str, bytes]) -> dict[str, bytes]:
    data = entry.to_json()
    found = entry_problems(data, _schema(root))
    if found:
        raise _broken(f"entry {entry.id}", found)
    _check_files(entry, files)
    content = {
        **files,
        "entry.yaml": yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=100).encode(),
        "metrics.json": _metrics(data),
    }
    if entry.reproducible:
        content["dvc.yaml"] = stage_text(entry, content).encode()
    return content


def _metrics(data: Mapping[str, Any]) -> bytes:
    """The numbers of an entry, as its ``metrics.json`` has them."""
    numbers = {target: data[target] for target in ("validation", "test")}
    metrics = {"schema": "entry-metrics/1", **numbers}
    return (json.dumps(metrics, indent=2, sort_keys=True) + "\n").encode()


def _check_files(entry: Entry, files: Mapping[str, bytes]) -> None:
    wrong = [f"'{name}' is no file of an entry" for name in files if name not in _GIVEN]
    patch = entry.evidence["patch"]
    if (patch is None) != ("patch.diff" not in files):
        wrong.append("evidence.patch and patch.diff go together")
    elif patch and hashlib.sha256(files["patch.diff"]).hexdigest() != patch["sha256"]:
        wrong.append("patch.diff does not have the digest that evidence.patch names")
    if wrong:
        raise EopError(
            "EOP662", "; ".join(wrong), where=Where(f"entry {entry.id}"), exit_code=ExitCode.DATA
        )


def _refuse_conflict(folder: Path, content: Mapping[str, bytes]) -> None:
    # Files of DVC (dvc.lock, pointers) may lie beside ours.
    differing = [name for name in _NAMES if _bytes(folder / name) != content.get(name)]
    if differing:
        raise EopError(
            "EOP663",
            f"an entry of this id exists with other content: {', '.join(differing)}",
            where=Where(str(folder)),
            hint="an entry is history; give the new result its own id",
            exit_code=ExitCode.STATE,
        )


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _read(path: Path, schema: dict[str, Any]) -> Entry:
    try:
        data = read_yaml(path)
    except FileNotFoundError:
        raise EopError(
            "EOP664",
            "no such entry",
            where=Where(str(path)),
            hint="`eop leaderboard` lists the entries",
            exit_code=ExitCode.STATE,
        ) from None
    except yaml.YAMLError as error:
        raise _broken(str(path), [str(error)]) from error
    found = entry_problems(data, schema)
    if not found and data["id"] != path.parent.name:
        found = [f"id: '{data['id']}' lies in the folder '{path.parent.name}'"]
    if found:
        raise _broken(str(path), found)
    return Entry.from_json(data)


def _broken(where: str, found: list[str]) -> EopError:
    return EopError(
        "EOP661",
        "not a valid entry:\n  " + "\n  ".join(found),
        where=Where(where),
        exit_code=ExitCode.DATA,
    )


def _schema(root: Path) -> dict[str, Any]:
    schema: dict[str, Any] = read_yaml(root / SCHEMA_FILE)
    return schema


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
