"""Read the evidence of rows: whether it holds, and in what two rows differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eop.core.canonical import file_digest
from eop.core.errors import EopError, ExitCode, Where
from eop.core.files import read_json
from eop.core.schema import problems
from eop.core.yaml_files import read_yaml
from eop.evidence import FileRef
from eop.evidence.objects import ObjectStore
from eop.functions.evidence_manifest import manifest_path
from eop.leaderboard import entry_folder, read_entry
from eop.leaderboard.standing import standing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from eop.leaderboard import Entry

SCHEMA_FILE = "config/schemas/evidence.schema.yaml"


def read_manifest(root: Path, entry_id: str) -> dict[str, Any]:
    """The manifest of an entry; EOP648 when there is none or it breaks its schema."""
    path = manifest_path(root, read_entry(root, entry_id).id)
    if not path.is_file():
        raise _bad(path, "the row has no manifest: it was published by an earlier version")
    manifest: dict[str, Any] = read_json(path)
    if found := problems(manifest, read_yaml(root / SCHEMA_FILE)):
        raise _bad(path, "not a valid manifest:\n  " + "\n  ".join(found))
    return manifest


def evidence_problems(root: Path, entry_id: str) -> list[str]:
    """All that is missing or has changed of an entry's evidence, one line each."""
    manifest = read_manifest(root, entry_id)
    store, found = ObjectStore.of(root), []
    if file_digest(entry_folder(root, entry_id) / "entry.yaml") != manifest["entry_sha256"]:
        found.append("entry.yaml: not the row that the evidence was kept for")
    for file in manifest["files"]:
        if file["stored"]:
            problem = store.check(file["sha256"])
            found += [f"{file['path']}: {problem}"] if problem else []
        else:
            ref = FileRef(file["path"], file["sha256"], file["size"])
            found += ref.check(root)
    return found


def differences(root: Path, one: str, other: str) -> list[tuple[str, Any, Any]]:
    """What differs between two rows: (what, of the one, of the other), by name.

    What was tried and how, what it came to and what it cost; not when, and not the files' paths.
    """
    left, right = (dict(_facts(root, name)) for name in (one, other))
    return [
        (name, left.get(name), right.get(name))
        for name in sorted(left.keys() | right.keys())
        if left.get(name) != right.get(name)
    ]


def _facts(root: Path, entry_id: str) -> Iterator[tuple[str, Any]]:
    entry, manifest = read_entry(root, entry_id), read_manifest(root, entry_id)
    evidence = entry.evidence
    yield "standing", standing(entry)
    yield "parent", entry.parent
    yield "reason", entry.reason or None
    yield "decision", manifest["decision"]
    yield "test reads", entry.test_reads
    for name in ("repository", "environment", "plan", "config", "products", "preflight"):
        yield from _flat(name, evidence[name])
    yield "patch", evidence["patch"] and evidence["patch"]["sha256"]
    yield "snapshot", evidence["snapshot"] and evidence["snapshot"]["sha256"]
    yield "split", evidence["split"]["digest"]
    yield from _scores(entry)
    for node in manifest["nodes"]:
        # Two rows' nodes are named by their turn and branch; what is compared is the step.
        step = node["node"].split("_", 1)[-1]
        step = step.removeprefix(f"{entry.branch}_") if entry.branch else step
        for name in ("outcome", "attempts", "actions", "tokens", "usd"):
            yield f"node {step}: {name}", node[name]
    prompts = sorted(file["sha256"] for file in manifest["files"] if file["role"] == "prompt")
    yield "prompts", prompts


def _scores(entry: Entry) -> Iterator[tuple[str, Any]]:
    for target, scores in (("validation", entry.validation), ("test", entry.test)):
        for seed, metrics in (scores.seeds if scores else {}).items():
            for name, value in metrics.items():
                yield f"{target} {name}, seed {seed}", value


def _flat(place: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _flat(f"{place}.{key}", item)
    else:
        yield place, value


def _bad(path: Path, message: str) -> EopError:
    return EopError("EOP648", message, where=Where(str(path)), exit_code=ExitCode.DATA)
