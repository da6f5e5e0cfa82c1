"""A protocol as a picture: every step, gate, fan-out and way back, and how far a run has come."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from random_plans import plans
from reported_run import HOSTILE, reported
from research_run import Run, research

from eop.cli import cli
from eop.compile.graph import LOOP, NEEDS, REJECTED, edges
from eop.compile.layout import layout
from eop.protocol.compiler import load
from eop.report.protocol_graph import graph_mermaid, graph_svg, step_marks
from eop.report.view import view
from eop.runtime.node import Outcome

ROOT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"
SHIPPED = sorted((ROOT / "config/protocols").glob("*.eop.md"))


def check_layout(plan) -> None:
    drawn = layout(plan)
    boxes = {box.step: box for box in drawn.boxes}
    assert set(boxes) == set(plan.steps)
    for box in drawn.boxes:
        assert 0 <= box.x <= box.x + box.width <= drawn.width
        assert 0 <= box.y <= box.y + box.height <= drawn.height
        for needed in plan.requirements(box.step):
            assert boxes[needed].y + boxes[needed].height < box.y
    for one, other in combinations(drawn.boxes, 2):
        beside = one.x + one.width <= other.x or other.x + other.width <= one.x
        assert beside or one.y + one.height <= other.y or other.y + other.height <= one.y
    ways = {edge for edge in edges(plan) if edge.kind != NEEDS}
    assert ways <= {arrow.edge for arrow in drawn.arrows}
    assert len(drawn.bands) == len(plan.heads)


@given(plans())
def test_boxes_of_any_protocol_stand_apart_each_below_what_it_needs(plan) -> None:
    check_layout(plan)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_shipped_protocols_are_drawn_whole(path: Path) -> None:
    plan = load(path, root=ROOT)
    check_layout(plan)
    picture = ET.fromstring(graph_svg(plan))
    said = " ".join("".join(text.itertext()) for text in picture.iter(f"{SVG}text"))
    for name in plan.steps:
        assert name.replace("_", " ") in said
    assert len(list(picture.iter(f"{SVG}polygon"))) == len(plan.gates)


def test_every_arrow_is_among_the_edges_with_how_often() -> None:
    found = {(edge.source, edge.target): edge for edge in edges(research())}
    assert found["implement", "train"].kind == NEEDS
    rejected = found["confirm", "investigate"]
    assert (rejected.kind, rejected.label) == (REJECTED, "no, at most once")
    turns = found["evolve", "propose"]
    assert (turns.kind, turns.label) == (LOOP, "at most 2 iterations")


def test_progress_is_that_of_the_newest_iteration_of_each_step(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.to_branches()
    run.do("it01_p01_implement")
    run.do("it01_p02_implement", Outcome.FAILED)
    run.do("it01_p01_train")
    run.enter("it01_p01_analyze")
    shown = view(run.plan, run.trace.state())
    marks = step_marks(shown)
    assert (marks["implement"].kind, marks["implement"].said) == ("bad", "1 completed, 1 failed")
    assert marks["analyze"].kind == "calm"
    assert (marks["confirm"].kind, marks["confirm"].said) == ("good", "approved")
    assert (marks["promote"].kind, marks["promote"].said) == ("", "waiting")
    text = graph_mermaid(run.plan, shown)
    assert "    class implement bad\n" in text
    assert "classDef" not in graph_mermaid(run.plan)
    picture = graph_svg(run.plan, shown)
    assert "1 completed, 1 failed" in picture


def test_a_gate_that_was_asked_again_stands_as_it_stands_now(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.do("it01_investigate")
    run.touch("rejected", "again")
    run.do("it01_investigate_r2")
    run.advance()
    marks = step_marks(view(run.plan, run.trace.state()))
    assert (marks["confirm"].kind, marks["confirm"].said) == ("warn", "requested")


def test_hostile_titles_are_text_in_a_picture() -> None:
    picture = ET.fromstring(graph_svg(replace(research(), title=HOSTILE)))
    assert picture.find(f"{SVG}title").text == HOSTILE
    assert not list(picture.iter(f"{SVG}script"))


def test_eop_graph_prints_both_forms_with_and_without_a_run(tmp_path: Path) -> None:
    reported(tmp_path)

    def call(*arguments: str) -> str:
        done = CliRunner().invoke(cli, ["--project", str(tmp_path), "graph", *arguments])
        assert done.exit_code == 0, done.output
        return done.output

    assert call("--run", "r1").startswith("flowchart LR\n")
    assert "classDef" in call("--run", "r1")
    ET.fromstring(call("--run", "r1", "--format", "svg"))
    refused = CliRunner().invoke(
        cli, ["--project", str(tmp_path), "graph", "--run", "r1", "--config", "a=1"]
    )
    assert refused.exit_code == 2
