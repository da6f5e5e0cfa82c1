"""The function `screen` in a run: the proposals, the champion's settings, all notes."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from function_runs import Small, plan_of, small

from eop.core.errors import EopError
from eop.core.files import read_json, write_json
from eop.functions.registry import function
from eop.protocol.model import Output, Phase

sys.path.insert(0, str(Path(__file__).parents[1] / "knowledge"))
from knowledge_samples import note
from knowledge_samples import project as knowledge

ITEMS = [
    {"id": "film", "title": "FiLM on users", "hypothesis": "Users differ."},
    {"id": "new", "title": "A new thing", "hypothesis": "New."},
]


def screened(needs: str) -> Small:
    phase = Phase(
        "screen",
        25,
        "Screen",
        "",
        needs=(needs,),
        function="screen",
        outputs=(Output("screening", "screening.json", "screening"),),
    )
    plan = plan_of()
    return replace(plan, phases=(*plan.phases, phase))


@pytest.fixture
def run(tmp_path: Path) -> Small:
    made = small(tmp_path, plan=screened("propose"))
    knowledge(tmp_path)
    manifest = {"dataset": "toy", "digest": "ab" * 32}
    write_json(made.project.split_dir / "manifest.json", manifest)
    made.project.base_experiment.write_text("model: {dim: 8}\n")
    made.run.advance()
    made.play("it01_baseline", {"baseline": made.baseline()})
    made.play("it01_propose", {"proposals": ITEMS})
    return made


def test_a_repeat_under_the_conditions_of_the_champion_is_reported(run: Small) -> None:
    note(run.project.root, "bad", "worse")
    report = read_json(function("screen")(run.context("it01_screen")))
    assert [(one["proposal"], one["note"]) for one in report["repeats"]] == [("film", "bad")]
    assert report["new"] == ["new"]
    run.project.base_experiment.write_text("model: {dim: 16}\n")
    report = read_json(function("screen")(run.context("it01_screen")))
    assert report["repeats"] == [] and report["new"] == ["film", "new"]


def test_without_proposals_before_it_there_is_nothing_to_screen(tmp_path: Path) -> None:
    made = small(tmp_path, plan=screened("baseline"))
    made.run.advance()
    made.play("it01_baseline", {"baseline": made.baseline()})
    with pytest.raises(EopError) as caught:
        function("screen")(made.context("it01_screen"))
    assert caught.value.code == "EOP683"
