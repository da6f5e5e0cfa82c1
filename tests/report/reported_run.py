"""A run with every kind of end, on disk, for the reports."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from entry_samples import FILES, REPOSITORY, candidate, evidence, failed, project, scores
from research_run import Run, research

from eop.core.canonical import canonical_json
from eop.core.files import write_json, write_text
from eop.evidence.objects import ObjectStore
from eop.functions.evidence_manifest import manifest_path
from eop.knowledge import write_note
from eop.leaderboard import Decision, Proposal, write_entry
from eop.project.config import Config
from eop.project.project import Project
from eop.runtime.lifecycle import leave
from eop.runtime.node import Instance, NodeResult, Outcome, Usage

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = '<script>alert(1)</script><img src=x onerror=alert(2)> [bold]x[/bold] & "quoted"'
CURVE = b"seed\tepoch\tloss\n" + b"".join(
    f"{seed}\t{epoch}\t{4.8 / epoch**0.5 + 0.2 * seed}\n".encode()
    for seed in (1, 2)
    for epoch in range(1, 9)
)


def patch_of(title: str) -> bytes:
    """A patch of a Python file that says ``title`` in its name, in code and in a comment."""
    name = "hstu/" + title.replace("/", "_") + ".py"
    added = f'+    """{title}"""\n+    return 1  # {title}\n'
    return (
        f"diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n"
        f"@@ -1,2 +1,3 @@\n def score():\n-    return 0\n{added}"
        f"diff --git a/notes.txt b/notes.txt\n--- a/notes.txt\n+++ b/notes.txt\n"
        f"@@ -1 +1 @@\n--- a minus that is no header\n+{title}\n"
    ).encode()


def finding(title: str, status: str) -> dict[str, Any]:
    return {
        "id": "lookup",
        "severity": "major",
        "family": "tensor_routing",
        "file": f"hstu/{title}",
        "line": 3,
        "claim": f"A claim: {title}",
        "evidence": f"It shows: {title}",
        "suggested_check": f"Look at {title}",
        "status": status,
    }


def review(title: str) -> dict[str, Any]:
    rounds = [
        {
            "round": number,
            "verdict": verdict,
            "worst_open": worst,
            "reviewer": "scripted",
            "summary": f"Round {number}: {title}",
            "findings": [finding(title, status)],
            "check": {"passed": number == 2, "sha256": "ab"},
        }
        for number, verdict, worst, status in (
            (1, "fix", "major", "open"),
            (2, "approved", None, "resolved"),
        )
    ]
    findings = [finding(title, "resolved")]
    return {
        "schema": "review/1",
        "verdict": "approved",
        "until": "minor",
        "rounds": rounds,
        "findings": findings,
    }


def preflight(title: str) -> dict[str, Any]:
    invariant = {
        "id": "I1",
        "title": f"causality {title}",
        "status": "passed",
        "detail": f"no earlier output moved {title}",
        "measured": {},
    }
    return {"schema": "preflight/1", "passed": True, "invariants": [invariant]}


def keep_evidence(root: Path, entry_id: str, title: str) -> None:
    """A manifest with a review and a preflight report, as the publisher keeps them."""
    store = ObjectStore.of(root)
    documents = {"review.json": review(title), "preflight.json": preflight(title)}
    files = [
        {
            "role": "preflight" if name == "preflight.json" else "artifact",
            "path": f"runs/r1/it01/p01/step/artifacts/{name}",
            "sha256": store.put(canonical_json(document)),
            "size": 1,
            "stored": True,
        }
        for name, document in documents.items()
    ]
    node = {
        "node": "it01_p01_implement",
        "outcome": "completed",
        "reason": title,
        "attempts": 1,
        "actions": 7,
        "wall_s": 61.0,
        "tokens": None,
        "usd": None,
    }
    write_json(
        manifest_path(root, entry_id),
        {"schema": "evidence/1", "entry": entry_id, "nodes": [node], "files": files},
    )


def know(root: Path) -> None:
    """What reading evidence and knowledge takes: schemas, and an entity that titles name."""
    for name in ("review", "preflight", "note", "claim"):
        schema = REPOSITORY / "config" / "schemas" / f"{name}.schema.yaml"
        shutil.copy(schema, root / "config" / "schemas")
    net = "  feature:net: {names: [net, alert]}\n  model:hstu: {uses: [feature:net]}\n"
    write_text(root / "knowledge" / "entities.yaml", f"entities:\n{net}")


def fail(run: Run, key: str, reason: str) -> None:
    entered = run.enter(key)
    result = NodeResult(Outcome.FAILED, reason, {}, Usage(None, 2.5))
    leave(run.trace, run.root, Instance.parse(key), entered.attempt, result)


def reported(root: Path, title: str = "A wider net") -> Project:
    """A run that waits at the gate after its first iteration, with its entries and notes."""
    run = Run(project(root), research(title=f"Research {title}"))
    config = Config("research.eop.md", "r1", "toy", "d", "e", 1, 0.1, "none", False, "p", False)
    write_json(run.folder / "config.json", config.to_json())
    run.do("it01_investigate")
    run.touch("rejected", f"look again {title}")
    run.do("it01_investigate_r2")
    run.touch("approved", "fine now")
    # The rejection gave all that follows a new revision.
    run.do("it01_propose_r2")
    run.touch()
    for step in ("implement", "train", "analyze"):
        run.do(f"it01_p01_{step}_r2")
    fail(run, "it01_p02_implement_r2", f"the worker gave up {title}")
    assert run.enter("it01_p02_train_r2").kind == "skip"
    run.do("it01_p02_analyze_r2")
    run.do("it01_promote_r2")
    run.advance()
    know(root)
    for entry, files in [*_positives(title), *_negatives(title)]:
        write_entry(root, entry, files)
        if entry.id == "r1-it01-p01":
            keep_evidence(root, entry.id, title)
        write_note(root, entry, f"An analysis.\n\n{title}\n\n![pixel](http://evil.example/x.png)")
    return Project(root, config, run.plan)


def _positives(title: str):
    config = {"config.yaml": FILES["config.yaml"], "curve.tsv": CURVE}
    own = {"run": "r1"}
    reference = evidence(patch=None)
    patch = patch_of(title)
    patched = evidence(patch={"sha256": hashlib.sha256(patch).hexdigest(), "size": len(patch)})
    yield (
        candidate(
            "r1-popularity",
            kind="popularity",
            iteration=None,
            branch=None,
            parent=None,
            proposal=Proposal("popularity", "Popularity", ""),
            decision=None,
            validation=scores(0.045),
            test=scores(0.0449),
            evidence=evidence(patch=None, config=None, checkpoints=[]),
            **own,
        ),
        {},
    )
    yield (
        candidate(
            "r1-base",
            kind="base",
            iteration=None,
            branch=None,
            parent=None,
            proposal=Proposal("base", "The base", "What proposals must beat."),
            decision=None,
            validation=scores(0.1),
            test=scores(0.095),
            evidence=reference,
            **own,
        ),
        config,
    )
    yield (
        candidate(
            "r1-it01-p01",
            proposal=Proposal("wide", title, f"Because {title}"),
            parent="r1-base",
            evidence=patched,
            **own,
        ),
        {**FILES, "patch.diff": patch, "curve.tsv": CURVE},
    )


def _negatives(title: str):
    own = {"run": "r1"}
    worse = Decision(False, -0.012, (-0.019, -0.005), "the interval lies below 0: worse")
    yield (
        candidate(
            "r1-it01-p03",
            proposal=Proposal("short", "A shorter history", "Speed."),
            decision=worse,
            validation=scores(0.088),
            test=scores(0.08),
            **own,
        ),
        FILES,
    )
    yield (
        failed(
            "r1-it01-p02",
            proposal=Proposal("deep", "A deeper net", "Depth."),
            decision=replace(failed().decision),
            **own,
        ),
        {},
    )
    rejected = evidence(preflight={"passed": False, "failed": ["I5"]}, checkpoints=[])
    yield (
        failed(
            "r1-it01-p04",
            outcome="rejected_by_preflight",
            reason=f"I5 failed: one scoring function {title}",
            evidence=rejected,
            proposal=Proposal("leak", "Genres", ""),
            **own,
        ),
        {"patch.diff": FILES["patch.diff"]},
    )
