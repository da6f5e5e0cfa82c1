"""A run with every kind of end, on disk, for the reports."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from entry_samples import FILES, candidate, evidence, failed, project, scores
from research_run import Run, research

from eop.core.files import write_json
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
    for entry, files in [*_positives(title), *_negatives()]:
        write_entry(root, entry, files)
        write_note(root, entry, f"An analysis.\n\n{title}\n\n![pixel](http://evil.example/x.png)")
    return Project(root, config, run.plan)


def _positives(title: str):
    config = {"config.yaml": FILES["config.yaml"], "curve.tsv": CURVE}
    own = {"run": "r1"}
    reference = evidence(patch=None)
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
            **own,
        ),
        {**FILES, "curve.tsv": CURVE},
    )


def _negatives():
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
            reason="I5 failed: one scoring function",
            evidence=rejected,
            proposal=Proposal("leak", "Genres", ""),
            **own,
        ),
        {"patch.diff": FILES["patch.diff"]},
    )
