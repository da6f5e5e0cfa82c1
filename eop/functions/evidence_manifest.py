"""The evidence of a row: every file that it rests on, kept by content, and each node's cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eop.core.canonical import file_digest
from eop.core.files import write_json
from eop.evidence import FileRef
from eop.evidence.objects import ObjectStore
from eop.functions.evidence_archive import write_archive
from eop.leaderboard import entry_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from eop.functions.context import Context
    from eop.functions.results import Result
    from eop.leaderboard import Entry
    from eop.runtime.node import Instance
    from eop.runtime.state import NodeState

SCHEMA = "evidence/1"
FILE = "evidence.json"
_LARGEST = 8 << 20  # bytes; what is larger stays where it is, by digest
# In a node's folder: its end, what it was told and left, what its commands and agents said.
_PATTERNS = (
    "outcome.json",
    "told.json",
    "artifacts/*",
    "work/*.stdout",
    "work/*.stderr",
    "work/*/a*/*",
)
_ROLES = {
    "prompt.md": "prompt",
    "told.json": "told",
    "patch.diff": "patch",
    "experiment.yaml": "experiment",
    "preflight.json": "preflight",
    "checkpoint.json": "checkpoint",
    "metrics.json": "metrics",
    "refit.json": "metrics",
    "baseline.json": "metrics",
    "decision.json": "decision",
}


def manifest_path(root: Path, entry_id: str) -> Path:
    """Where the manifest of an entry lies."""
    return entry_folder(root, entry_id) / FILE


def keep_manifest(context: Context, result: Result, entry: Entry) -> Path:
    """Keep every file that the row rests on; its manifest and archive come beside the entry.

    Repeating it writes the same bytes. Weights, ranks, split and snapshot are named by digest and
    stay where DVC keeps them.
    """
    store = ObjectStore.of(context.root)
    path = manifest_path(context.root, result.id)
    files = [_stored(context.root, store, role, file) for role, file in _files(context, result)]
    decision = entry.decision
    manifest = {
        "schema": SCHEMA,
        "entry": entry.id,
        "entry_sha256": file_digest(path.with_name("entry.yaml")),
        "outcome": entry.outcome,
        "reason": entry.reason,
        "decision": decision.reason if decision else None,
        "nodes": [_node(instance, node) for instance, node in result.nodes.items()],
        "files": [*files, *_elsewhere(context, entry)],
    }
    write_archive(context.root, entry.id, manifest)
    write_json(path, manifest)
    return path


def _node(instance: Instance, node: NodeState) -> dict[str, Any]:
    usage = node.usage
    micro = usage.micro_usd if usage else None
    return {
        "node": instance.key,
        "outcome": str(node.status),
        "reason": node.reason,
        "attempts": node.attempt,
        "actions": usage.actions if usage else None,
        "wall_s": usage.wall_s if usage else None,
        "tokens": usage.tokens if usage else None,
        "usd": None if micro is None else micro / 1_000_000,
    }


def _files(context: Context, result: Result) -> Iterator[tuple[str, Path]]:
    """The small files that a row rests on, each with its role, in a fixed order."""
    project = context.project
    yield "plan", project.run_dir / "plan.json"
    yield "config", project.run_dir / "config.json"
    yield "split", project.split_dir / "manifest.json"
    if result.verdict is not None:
        yield "decision", context.produced("promote")
    for instance in result.nodes:
        folder = project.run_dir / instance.directory
        seen: set[Path] = set()
        for pattern in _PATTERNS:
            for path in sorted(folder.glob(pattern)):
                if path.is_file() and not path.is_symlink() and path not in seen:
                    seen.add(path)
                    yield _role(path), path


def _role(path: Path) -> str:
    if path.suffix in (".stdout", ".stderr") or path.name in ("stdout", "stderr"):
        return "output"
    own = "artifact" if path.parent.name == "artifacts" else "attempt"
    return _ROLES.get(path.name, own)


def _stored(root: Path, store: ObjectStore, role: str, path: Path) -> dict[str, Any]:
    size = path.stat().st_size
    kept = size <= _LARGEST
    # One read: the digest is that of the bytes that are kept, should the file change meanwhile.
    content = path.read_bytes() if kept else b""
    sha256 = store.put(content) if kept else file_digest(path)
    return {
        "role": role,
        "path": path.relative_to(root).as_posix(),
        "sha256": sha256,
        "size": len(content) if kept else size,
        "stored": kept,
    }


def _elsewhere(context: Context, entry: Entry) -> Iterator[dict[str, Any]]:
    """What DVC keeps: the snapshot, the split, weights and ranks of every user."""
    evidence = entry.evidence
    groups = {
        "snapshot": [FileRef.of(context.project.snapshot, context.root).to_json()],
        "split": evidence["split"]["files"],
        "weights": evidence["checkpoints"],
        "ranks": evidence.get("ranks", []),
    }
    for role, files in groups.items():
        for file in files:
            facts = {name: file[name] for name in ("path", "sha256", "size")}
            yield {"role": role, **facts, "stored": False}
