"""Entries for tests, as a publisher would build them."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from eop.leaderboard import Cost, Decision, Entry, Proposal, Scores

REPOSITORY = Path(__file__).parents[2]
PATCH = (
    b"diff --git a/hstu/x.py b/hstu/x.py\n"
    b"--- a/hstu/x.py\n+++ b/hstu/x.py\n@@ -1 +1 @@\n-a = 1\n+a = 2\n"
)
CONFIG = b"model: {dim: 8}\n"
CURVE = b"epoch\tloss\tseconds\n1\t3.5\t0.4\n2\t3.0\t0.4\n3\t2.8\t0.4\n"
FILES = {"patch.diff": PATCH, "config.yaml": CONFIG, "curve.tsv": CURVE}
SHA = "ab" * 32


def project(root: Path) -> Path:
    """A folder with the schema that a project has."""
    target = root / "config" / "schemas"
    target.mkdir(parents=True)
    for name in ("entry", "anchors"):
        shutil.copy(REPOSITORY / "config" / "schemas" / f"{name}.schema.yaml", target)
    return root


def scores(ndcg: float) -> Scores:
    by_seed = {
        seed: {"ndcg@10": ndcg + shift, "hr@10": min(1.0, 2 * ndcg), "mrr": ndcg / 2}
        for seed, shift in ((1, -0.001), (2, 0.001))
    }
    return Scores.over_seeds(by_seed, (ndcg - 0.01, ndcg + 0.01))


def evidence(**changes: Any) -> dict[str, Any]:
    file = {"path": "data/splits/toy/train.parquet", "sha256": SHA, "size": 10}
    return {
        "repository": {"head": "c0ffee", "dirty": False},
        "environment": {"python": "3.11.2", "packages": {"torch": None}},
        "plan": {"name": "demo", "version": "0.1.0", "digest": SHA},
        "products": {"implement.author": {"name": "scripted", "version": "1", "sha256": SHA}},
        "prompts": {"it01_p01_implement": SHA},
        "patch": {"sha256": hashlib.sha256(PATCH).hexdigest(), "size": len(PATCH)},
        "config": {"model": {"dim": 8}},
        "split": {"dataset": "toy", "digest": SHA, "files": [file]},
        "snapshot": {"path": "data/snapshots/abc.tar", "sha256": SHA},
        "checkpoints": [{"path": "data/checkpoints/e1.bin", "sha256": SHA, "size": 5, "seed": 1}],
        "preflight": {"passed": True, "failed": []},
        **changes,
    }


def candidate(entry_id: str = "demo-it01-p01", ndcg: float = 0.12, **changes: Any) -> Entry:
    """A completed candidate with every field measured."""
    entry = Entry(
        id=entry_id,
        kind="candidate",
        run="demo",
        iteration=1,
        branch="p01",
        proposal=Proposal("p01", "Genre features", "Genres carry what ids cannot."),
        parent="demo-base",
        outcome="completed",
        reason="",
        validation=scores(ndcg),
        test=scores(ndcg - 0.01),
        test_reads=1,
        decision=Decision(True, 0.02, (0.01, 0.03), "the interval lies above 0"),
        cost=Cost(12, 30.0, 20.5),
        tolerance=0.0003,
        not_reproducible=None,
        evidence=evidence(),
    )
    return replace(entry, **changes)


def failed(entry_id: str = "demo-it01-p02", **changes: Any) -> Entry:
    """A candidate whose node failed before anything was measured."""
    values: dict[str, Any] = {
        "branch": "p02",
        "proposal": Proposal("p02", "Longer history", "More context."),
        "outcome": "failed",
        "reason": "the program ended with status 1",
        "validation": None,
        "test": None,
        "test_reads": 0,
        "decision": Decision(False, None, None, "not measured: failed"),
        "cost": Cost(None, 3.0, None),
        "not_reproducible": "nothing was trained",
        "evidence": evidence(patch=None, checkpoints=[], preflight=None, config=None),
    }
    return candidate(entry_id, **{**values, **changes})
