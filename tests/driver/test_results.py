"""What `snakemake --report` shows of a run, and that no title gets out of its place there."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from research_run import Run, research
from snakemake.io import apply_wildcards, get_flag_value

from eop.compile.results import CAPTIONS, iteration_heading, of_step
from eop.compile.rules import Rule
from eop.core.errors import EopError
from eop.core.files import write_json
from eop.driver.results import asked_for, begun, shown
from eop.project.config import Config
from eop.project.project import Project
from eop.protocol.model import Loop
from eop.runtime.node import Instance, Outcome

ROOT = Path(__file__).parents[2]
CONFIG = Config("research.eop.md", "r1", "toy", "d", "e", 1, 0.1, "none", False, "p", False)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    made = Run(tmp_path)
    made.to_branches()
    made.do("it01_p01_implement")
    made.do("it01_p02_implement", Outcome.FAILED)
    return made


def test_steps_gates_and_branches_stand_apart_and_say_how_they_ended(run: Run) -> None:
    state = run.trace.state()

    def of(key: str) -> tuple[str, str, str, str]:
        found = of_step(run.plan, state, Instance.parse(key))
        return found.category, found.subcategory, found.label, found.caption

    assert of("it01_investigate") == (
        "Iteration 1", "Steps", "01 investigate: completed", "step.rst"
    )  # fmt: skip
    assert of("it01_confirm") == ("Iteration 1", "Gates", "02 confirm: approved", "gate.rst")
    assert of("it01_p02_implement")[1:3] == ("p02: A deeper net", "05 implement: failed")
    assert of("it01_promote")[2] == "08 promote: not yet"
    assert of("it01_evolve")[1:3] == ("Gates", "09 evolve: not yet")
    assert of("it01_propose_r2")[2] == "03 propose r2: not yet"


def test_headings_sort_by_number_however_many_turns_there_may_be() -> None:
    many = replace(research(), loop=Loop("again", 100, ("evolve",), "propose", 12))
    assert sorted([iteration_heading(many, 10), iteration_heading(many, 2)]) == [
        "Iteration 02",
        "Iteration 10",
    ]
    assert iteration_heading(research(loop=None), 1) == "Iteration 1"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(title=st.text(min_size=1, max_size=200))
@example(title="{" * 200)
def test_no_title_leaves_its_script_or_names_a_wildcard(run: Run, title: str) -> None:
    state = run.trace.state()
    named = replace(state, branches={(1, "proposal"): {"p01": title}})
    found = of_step(run.plan, named, Instance.parse("it01_p01_implement"))
    assert not set("<>{}&") & set(found.subcategory)
    assert len(found.subcategory) <= 65
    assert apply_wildcards(found.subcategory, {}) == found.subcategory
    rule = Rule("r", "c", (), "o", {}, "l", "b", "m", "s", result=found)
    text = rule.text().split("    output:\n")[1].split("    params:")[0]
    flag = ast.parse(text.strip().rstrip(",")).body[0].value
    assert {k.arg: ast.literal_eval(k.value) for k in flag.keywords} == found.flag(
        f"../../../{CAPTIONS}"
    )


@pytest.fixture
def sent_back(tmp_path: Path) -> Project:
    """A run in its first iteration whose first step a person has sent back."""
    run = Run(tmp_path)
    run.do("it01_investigate")
    run.touch("rejected", "look again")
    run.do("it01_investigate_r2")
    run.advance()
    write_json(run.folder / "config.json", CONFIG.to_json())
    return Project(tmp_path, CONFIG, run.plan)


def pages(root: Path, run: str) -> list[tuple[str, int | None]]:
    return [(f"runs/{run}/pages/it01.html", 1), (f"runs/{run}/pages/run.html", None)]


def test_what_no_rule_makes_is_shown_and_what_one_makes_is_not_shown_twice(
    sent_back: Project,
) -> None:
    before = sorted((sent_back.trace_dir).iterdir())
    found = {str(path): get_flag_value(path, "report") for path in shown(sent_back, pages)}
    assert {path: (flag.category, flag.labels["result"]) for path, flag in found.items()} == {
        "runs/r1/pages/it01.html": ("Iteration 1", "rows, steps and gates"),
        "runs/r1/pages/run.html": ("All iterations", "the page of the run"),
        "runs/r1/it01/investigate/outcome.json": ("Iteration 1", "01 investigate: completed"),
        "runs/r1/it01/confirm/outcome.json": ("Iteration 1", "02 confirm: rejected"),
    }
    gate = json.loads((sent_back.root / "runs/r1/it01/confirm/outcome.json").read_text())
    assert (gate["outcome"], gate["reason"]) == ("rejected", "look again")
    assert sorted((sent_back.trace_dir).iterdir()) == before, "a report is no event"


def test_every_caption_that_is_named_ships(sent_back: Project) -> None:
    named = {get_flag_value(path, "report").caption for path in shown(sent_back, pages)}
    names = {Path(caption.get_path_or_uri(secret_free=True)).name for caption in named}
    rules = re.findall(r'"captions/([a-z]+\.rst)"', (ROOT / "rules/report.smk").read_text())
    shipped = {path.name for path in (ROOT / CAPTIONS).iterdir()}
    assert shipped == names | set(rules)


def test_a_run_that_has_not_begun_is_not_begun_by_a_report(tmp_path: Path) -> None:
    project = Project(tmp_path, CONFIG, research())
    with pytest.raises(EopError, match="EOP814"):
        begun(project)
    assert not project.trace_dir.exists()


def test_only_a_report_alone_is_one() -> None:
    assert asked_for(["snakemake", "--report"])
    assert asked_for(["snakemake", "--report=a.zip", "--cores", "1"])
    assert not asked_for(["snakemake", "--report-after-run", "--report", "a.html"])
    assert not asked_for(["snakemake", "--cores", "1", "--report-stylesheet", "a.css"])
