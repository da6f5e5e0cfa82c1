"""What lies beside an entry: its patch, curve and note, and what its evidence has kept."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from eop.core.errors import EopError
from eop.core.files import read_json
from eop.core.schema import problems
from eop.core.yaml_files import read_yaml
from eop.evidence.objects import ObjectStore
from eop.functions.evidence_manifest import manifest_path
from eop.knowledge import note_path
from eop.leaderboard import entry_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SCHEMAS = {"review/1": "review", "preflight/1": "preflight"}


@dataclass(frozen=True)
class EntryFiles:
    """Texts and documents of an entry; ``None`` when there is no such file.

    ``reviews`` and ``preflight`` conform to their schemas; ``nodes`` are those of the manifest.
    ``lost`` says of each file that the evidence names and that cannot be shown, why.
    """

    patch: str | None = None
    curve: str | None = None
    note: str | None = None
    reviews: tuple[dict[str, Any], ...] = ()
    preflight: dict[str, Any] | None = None
    nodes: tuple[dict[str, Any], ...] = ()
    lost: tuple[str, ...] = ()


def read_entry_files(root: Path, entry_id: str) -> EntryFiles:
    """All that there is beside an entry of the project at ``root``."""
    folder = entry_folder(root, entry_id)
    plain = EntryFiles(
        patch=_read(folder / "patch.diff"),
        curve=_read(folder / "curve.tsv"),
        note=_read(note_path(root, entry_id)),
    )
    path = manifest_path(root, entry_id)
    if not path.is_file():
        return plain
    manifest = read_json(path)
    kept, lost = _documents(root, manifest["files"])
    preflights = [document for document in kept if document["schema"] == "preflight/1"]
    return replace(
        plain,
        reviews=tuple(document for document in kept if document["schema"] == "review/1"),
        preflight=preflights[-1] if preflights else None,
        nodes=tuple(manifest["nodes"]),
        lost=tuple(lost),
    )


def _documents(root: Path, files: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[str]]:
    """The reviews and preflight reports among ``files``, in their order, and what is lost."""
    store = ObjectStore.of(root)
    found: dict[str, dict[str, Any]] = {}
    lost: list[str] = []
    for file in _candidates(files):
        try:
            document = json.loads(store.get(file["sha256"]))
        except EopError as error:
            lost.append(f"{file['path']}: {error.message}")
            continue
        except ValueError:
            lost.append(f"{file['path']}: not JSON")
            continue
        kind = _SCHEMAS.get(str(document.get("schema"))) if isinstance(document, dict) else None
        if kind is None:
            continue
        if wrong := problems(document, _schema(root, kind)):
            lost.append(f"{file['path']}: not a valid {kind}: {wrong[0]}")
        else:
            found[file["sha256"]] = document
    return list(found.values()), lost


def _candidates(files: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """What nodes left as artifacts of theirs: copies in their work are the same by content."""
    for file in files:
        named = "/artifacts/" in file["path"] and file["path"].endswith(".json")
        if file["stored"] and named and file["role"] in ("artifact", "preflight"):
            yield file


def _schema(root: Path, kind: str) -> dict[str, Any]:
    schema: dict[str, Any] = read_yaml(root / "config" / "schemas" / f"{kind}.schema.yaml")
    return schema


def _read(path: Path) -> str | None:
    return path.read_text(errors="replace") if path.is_file() else None
