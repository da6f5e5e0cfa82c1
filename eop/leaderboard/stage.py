"""The DVC stage of an entry: the text of ``leaderboard/<id>/dvc.yaml``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Container

    from eop.leaderboard.entry import Entry

_RECORD = ("entry.yaml", "config.yaml", "patch.diff", "metrics.json")
_HEADER = "# Train and evaluate this entry again: dvc repro -f -s --no-run-cache {path}:reproduce\n"


def stage_text(entry: Entry, files: Container[str]) -> str:
    """The stage ``reproduce`` of ``entry``; ``files`` are the names of the entry's own files.

    Its dependencies are the record, the split and the snapshot, never the harness's code: an edit
    of the harness must not make every entry look changed. Outputs go to ``repro/<id>/``, so that
    the recorded files are never touched.
    """
    folder = f"leaderboard/{entry.id}"
    out = f"repro/{entry.id}"
    evidence = entry.evidence
    snapshot = evidence["snapshot"]
    stage: dict[str, Any] = {
        "wdir": "../..",
        # `exec`: not every shell makes way for its last command, and a training is to end with DVC.
        "cmd": f"exec python -m eop.cli reproduce {folder} {out}",
        "deps": [
            *(f"{folder}/{name}" for name in _RECORD if name in files),
            *(file["path"] for file in evidence["split"]["files"]),
            *([snapshot["path"]] if snapshot else []),
        ],
        "outs": [{f"{out}/{name}": {"cache": False}} for name in ("metrics.json", "verdict.json")],
    }
    text = yaml.safe_dump({"stages": {"reproduce": stage}}, sort_keys=False, width=100)
    return _HEADER.format(path=f"{folder}/dvc.yaml") + text
