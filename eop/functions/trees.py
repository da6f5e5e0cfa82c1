"""Source trees that models are trained from: the pinned snapshot, and the snapshot with a patch."""

from __future__ import annotations

import hashlib
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from eop.agents.patch import apply, apply_to_tree, changes, commit_tree, diff, init_store
from eop.agents.target import load
from eop.core.archives import members, pack
from eop.core.canonical import file_digest
from eop.core.errors import EopError, ExitCode, Where
from eop.core.files import read_json, write_bytes, writing
from eop.core.locks import exclusive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from eop.project.project import Project

_IGNORED = {"__pycache__"}


def pin_snapshot(root: Path, target: str) -> Path:
    """Pack the target's paths into ``data/snapshots/<sha16>.tar`` and return it.

    Equal trees give equal bytes: names are sorted; owner, mode and time are fixed.
    """
    spec = load(root / "config" / "targets" / f"{target}.yaml")
    paths = _files(root, spec.snapshot)
    content = pack((path.relative_to(root).as_posix(), path.read_bytes()) for path in paths)
    name = hashlib.sha256(content).hexdigest()[:16]
    path = root / "data" / "snapshots" / f"{name}.tar"
    if not path.is_file() or path.read_bytes() != content:
        write_bytes(path, content)
    return path


def _files(root: Path, names: Iterable[str]) -> list[Path]:
    found: list[Path] = []
    for name in names:
        top = root / name
        if not top.exists():
            raise EopError(
                "EOP620",
                f"the target's snapshot names '{name}', which is not there",
                where=Where("config/targets"),
                exit_code=ExitCode.CONFIG,
            )
        found += [top] if top.is_file() else [p for p in top.rglob("*") if p.is_file()]
    kept = {p for p in found if not _IGNORED & set(p.relative_to(root).parts)}
    return sorted(p for p in kept if p.suffix != ".pyc")


def unpack(archive: Path, to: Path) -> None:
    """Extract a snapshot; ``to`` appears whole or not at all."""
    _publish(to, lambda scratch: _extract(archive, scratch))


def snapshot_tree(project: Project) -> Path:
    """The run's pinned snapshot as a folder; EOP622 when the archive is not what was pinned."""
    tree = project.run_dir / "trees" / "base"
    if not tree.is_dir():
        _check_pinned(project)
        unpack(project.snapshot, tree)
    return tree


def _check_pinned(project: Project) -> None:
    facts = read_json(project.run_dir / "base" / "snapshot.json")
    path = project.snapshot
    if not path.is_file() or file_digest(path) != facts["sha256"]:
        raise EopError(
            "EOP622",
            "the pinned snapshot is missing, or its bytes have changed",
            where=Where(facts["path"]),
            hint=f"bring it back with: dvc pull {facts['path']}.dvc",
            exit_code=ExitCode.DATA,
        )


def candidate_tree(project: Project, patch: Path | None) -> Path:
    """The snapshot with ``patch`` applied, as a folder; without a patch, the snapshot itself."""
    if patch is None or not patch.stat().st_size:
        return snapshot_tree(project)
    tree = project.run_dir / "trees" / file_digest(patch)[:16]
    if not tree.is_dir():
        base = snapshot_tree(project)
        _publish(tree, lambda scratch: apply(base, patch.read_bytes(), scratch))
    return tree


def changed_paths(project: Project, patch: bytes) -> list[str]:
    """The paths that a patch changes in the pinned snapshot; EOP853 when it does not apply."""
    with tempfile.TemporaryDirectory() as folder:
        store = init_store(Path(folder) / "store.git")
        base = commit_tree(store, snapshot_tree(project))
        tree = apply_to_tree(store, base, patch)
        return [change.path for change in changes(store, base, tree)]


def steps(archive: Path, patches: Sequence[bytes]) -> list[bytes]:
    """Patches against one snapshot, as a series in which each goes on from the one before."""
    with tempfile.TemporaryDirectory() as folder:
        store = init_store(Path(folder) / "store.git")
        _extract(archive, Path(folder) / "tree")
        base = commit_tree(store, Path(folder) / "tree")
        trees = [base, *(apply_to_tree(store, base, patch) for patch in patches)]
        return [diff(store, before, after) for before, after in pairwise(trees)]


def _extract(archive: Path, to: Path) -> None:
    to.mkdir()
    # Python 3.11.0 to 3.11.3 lack extraction filters, so members are written one by one.
    for name, content in members(archive):
        path = to / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _publish(to: Path, fill: Callable[[Path], None]) -> None:
    """Fill a scratch folder beside ``to`` and rename it there; parallel jobs take turns."""
    with exclusive(to.with_name(f".{to.name}.lock"), wait=True):
        if to.is_dir():
            return
        with tempfile.TemporaryDirectory(prefix=f".{to.name}.", dir=to.parent) as folder:
            scratch = Path(folder) / "tree"
            with writing(to):
                fill(scratch)
                scratch.rename(to)
