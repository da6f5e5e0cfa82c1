"""The functions that bring an iteration's evidence to the wiki, in a run."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from function_runs import Small, plan_of, small

from eop.core.files import read_json
from eop.functions.registry import function
from eop.knowledge.checks import check
from eop.protocol.model import Output, Phase

sys.path.insert(0, str(Path(__file__).parents[1] / "knowledge"))
from knowledge_samples import claim, note, page
from knowledge_samples import project as knowledge


def phase(name: str, line: int, needs: str, schema: str, **more: object) -> Phase:
    output = Output(schema, f"{schema}.json", schema)
    given = {"function": name, **more}
    return Phase(name, line, name, "Do it.", needs=(needs,), outputs=(output,), **given)


@pytest.fixture
def run(tmp_path: Path) -> Small:
    """A run that has published two rows, in a project whose wiki has one claim."""
    plan = plan_of()
    agent = {"function": None, "pattern": "linear", "nodes": {"worker": "scripted"}}
    phases = (
        *plan.phases,
        phase("summarize", 70, "publish", "summary"),
        phase("contradictions", 71, "summarize", "contradictions"),
        phase("conclude", 72, "contradictions", "conclusions", **agent),
        phase("reconcile", 73, "conclude", "reconciled"),
    )
    loop = replace(plan.loop, after=("reconcile",))
    made = small(tmp_path, plan=replace(plan, phases=phases, loop=loop))
    knowledge(tmp_path)
    note(tmp_path, "old", "worse", conditions={"dataset": "toy", "base.model.dim": 64})
    page(tmp_path, claim("hurts", "worse", "old"))
    note(tmp_path, "r1-it01-p01", "better")
    note(tmp_path, "r1-it01-p02", "failed", entities=("dataset:toy",))
    made.to_branches()
    made.lose("p01")
    made.lose("p02")
    made.play("it01_promote")
    made.play("it01_publish", {"rows": {"entries": ["r1-it01-p01", "r1-it01-p02"]}})
    return made


def do(run: Small, name: str) -> dict:
    """Run the function of the node, and leave what it reports."""
    report = read_json(function(name)(run.context(f"it01_{name}")))
    output = run.project.plan.phase(name).outputs[0].name
    run.play(f"it01_{name}", {output: report})
    return report


def test_an_iteration_s_notes_reach_the_wiki_and_contradict_it_until_they_are_reconciled(
    run: Small,
) -> None:
    root = run.project.root
    summary = do(run, "summarize")
    assert summary["notes"] == ["r1-it01-p01", "r1-it01-p02"]
    assert [one["id"] for one in summary["claims"]] == ["r1-it01-p01", "r1-it01-p02"]
    assert summary["pages"] == ["knowledge/wiki/film.md", "knowledge/wiki/general.md"]
    assert any("both can hold" in problem.message for problem in check(root).problems)
    left = do(run, "contradictions")
    assert left["found"] is True and len(left["contradictions"]) == 3
    sides = [
        claim("small", "better", "r1-it01-p01", when={"base.model.dim": {"max": 32}}),
        claim("large", "worse", "old", when={"base.model.dim": {"min": 33}}),
    ]
    claims = [side.to_json() for side in sides]
    ids = [one["id"] for one in left["contradictions"]]
    conclusions = [{"contradiction": one, "claims": claims} for one in ids]
    run.play("it01_conclude", {"conclusions": conclusions})
    reconciled = do(run, "reconcile")
    assert len(reconciled["settled"]) == 3 and reconciled["open"] == []
    assert check(root).problems == ()


def test_a_killed_attempt_is_done_again_and_its_report_stands(run: Small) -> None:
    context = run.context("it01_summarize")
    first = function("summarize")(context).read_bytes()
    text = (run.project.root / "knowledge/wiki/film.md").read_text()
    assert function("summarize")(context).read_bytes() == first
    assert (run.project.root / "knowledge/wiki/film.md").read_text() == text


def test_without_conclusions_all_stays_open(run: Small) -> None:
    do(run, "summarize")
    do(run, "contradictions")
    run.play("it01_conclude", {"conclusions": []})
    reconciled = do(run, "reconcile")
    assert len(reconciled["open"]) == 3 and not reconciled["settled"]
