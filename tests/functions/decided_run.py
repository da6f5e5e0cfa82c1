"""A run whose candidates are decided on: what `publish` and `record` begin with."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from entry_samples import project as with_schema
from function_runs import Small, small

from eop.core.files import write_bytes, write_json

if TYPE_CHECKING:
    from pathlib import Path

_REASON = {"delta": None, "interval": None, "promoted": False, "reason": "not measured"}


def decided(root: Path, *, lost: bool = True, processes: int = 1, **changes: Any) -> Small:
    """A run that stands before `publish`: one branch was judged, one failed if ``lost``.

    Its training had so many ``processes``; what the base had is not recorded. ``changes`` are of
    the run's config.
    """
    run = small(with_schema(root), **changes)
    split = run.project.split_dir
    files = {"train.parquet": {}}
    write_json(split / "manifest.json", {"dataset": "toy", "digest": "d" * 64, "files": files})
    write_bytes(split / "train.parquet", b"events")
    content = b"a snapshot"
    snapshot = {"path": "data/snapshots/abc.tar", "sha256": hashlib.sha256(content).hexdigest()}
    write_json(run.project.run_dir / "base" / "snapshot.json", snapshot)
    write_bytes(root / snapshot["path"], content)
    run.to_branches()
    run.branch("p01", processes=processes)
    if lost:
        run.lose("p02")
    else:
        run.branch("p02")
    entries = ("r1-it01-p01", "r1-it01-p02")
    verdicts = [{"entry": entry, **_REASON} for entry in entries]
    decision = {"champion": "r1-base", "parent": "r1-base", "candidates": verdicts}
    run.play("it01_promote", {"decision": decision})
    return run
