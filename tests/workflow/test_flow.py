"""Guards, ways back, fan-outs, joins, optional phases and the loop, under the real Snakemake."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from conftest import Project, copy_sources
from report_reader import reported

if TYPE_CHECKING:
    import subprocess

SOURCES = Path(__file__).parent / "flow"
RUN = "flow-synthetic"
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("flow")]

# What became of each node, by its folder in the run's: its outcome, and what the reason says.
FIRST_TURN = {
    "survey": ("failed", "exit status 3"),
    "draft": ("completed", ""),
    "critique": ("completed", ""),
    "draft.r2": ("completed", ""),
    "critique.r2": ("completed", ""),
    "propose.r2": ("completed", ""),
    "compare.r2": ("skipped", "its guard is false: iteration > 1"),
    "cite.r2": ("skipped", "it01_compare_r2 ended as skipped"),
    "p01/sketch.r2": ("completed", ""),
    "p02/sketch.r2": ("failed", "exit status 4"),
    "p03/sketch.r2": ("completed", ""),
    "p04/sketch.r2": ("completed", ""),
    "p01/refine.r2": ("completed", ""),
    "p02/refine.r2": ("skipped", "it01_p02_sketch_r2 ended as failed"),
    "p03/refine.r2": ("skipped", "its guard is false: sketch.score >= least"),
    "p04/refine.r2": ("completed", ""),
    **{f"p0{branch}/note.r2": ("completed", "") for branch in range(1, 5)},
    "gather.r2": ("completed", ""),
    "pick.r2": ("completed", ""),
}
RACED = ("attempt", "prove")


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project of agents alone, set to the protocol `flow`; nothing has run."""
    project = copy_sources(tmp_path_factory.mktemp("flow") / "project")
    config = project.root / "config"
    shutil.copy(SOURCES / "flow.eop.md", config / "protocols")
    shutil.copy(SOURCES / "flow.yaml", config / "playbooks")
    shutil.copytree(SOURCES / "schemas", config / "schemas", dirs_exist_ok=True)
    target = "name: toy\nsnapshot: [toy]\neditable: [toy/**]\n"
    (config / "targets" / "toy.yaml").write_text(target)
    (project.root / "toy").mkdir()
    (project.root / "toy" / "model.py").write_text("width = 1\n")
    project.configure(protocol="config/protocols/flow.eop.md")
    return project


@pytest.fixture(scope="module")
def flow(begun: Project) -> tuple[Project, subprocess.CompletedProcess[str]]:
    """The run at its end, and what `eop run` said."""
    return begun, begun.eop("run", "--cores", "2")


def outcomes(project: Project, run: str, iteration: int) -> dict[str, tuple[str, str]]:
    folder = project.root / "runs" / run / f"it{iteration:02d}"
    found = {}
    for path in folder.rglob("outcome.json"):
        said = json.loads(path.read_text())
        found[path.parent.relative_to(folder).as_posix()] = (said["outcome"], said["reason"])
    return found


def of_phases(found: dict[str, Any], *phases: str) -> dict[str, Any]:
    names = {key: key.rpartition("/")[2].partition(".")[0] for key in found}
    return {key: value for key, value in found.items() if names[key] in phases}


def test_the_first_turn_goes_as_the_protocol_says(
    flow: tuple[Project, subprocess.CompletedProcess[str]],
) -> None:
    project, done = flow
    assert done.returncode == 0, done.stdout + done.stderr
    found = outcomes(project, RUN, 1)
    raced = of_phases(found, *RACED)
    decided = {key: value for key, value in found.items() if key not in raced}
    assert decided.keys() == FIRST_TURN.keys()
    for key, (outcome, reason) in FIRST_TURN.items():
        assert decided[key][0] == outcome, key
        assert reason in decided[key][1], key
        assert bool(reason) == bool(decided[key][1]), key


def test_a_join_of_any_cuts_the_other_branches_off(
    flow: tuple[Project, subprocess.CompletedProcess[str]],
) -> None:
    project, _ = flow
    proved = of_phases(outcomes(project, RUN, 1), "prove")
    count = Counter(outcome for outcome, _ in proved.values())
    assert len(proved) == 3
    assert 1 <= count["completed"] <= 2, "two cores can prove two at once"
    assert count["completed"] + count["skipped"] == 3
    reasons = {reason for outcome, reason in proved.values() if outcome == "skipped"}
    assert reasons == {"cut off, the join has enough"}
    events = project.recorded(RUN)
    last = max(e["seq"] for e in events if e["data"].get("node", "").endswith("prove_r2"))
    joined = [e["seq"] for e in events if e["data"].get("node") == "it01_pick_r2"]
    assert min(joined) > last


def test_no_node_worked_twice_and_none_without_an_outcome(
    flow: tuple[Project, subprocess.CompletedProcess[str]],
) -> None:
    project, _ = flow
    events = project.recorded(RUN)
    entered = Counter(e["data"]["node"] for e in events if e["type"] == "node_entered")
    assert set(entered.values()) == {1}
    assert [e["data"]["node"] for e in events if e["type"] == "sent_back"] == ["it01_critique"]
    assert "it02_compare" in entered
    assert "it02_survey" not in entered, "it stands outside the loop"


def test_the_condition_ends_the_loop_before_its_turns_are_spent(
    flow: tuple[Project, subprocess.CompletedProcess[str]],
) -> None:
    project, done = flow
    assert "RUN ENDED: completed" in done.stderr
    second = outcomes(project, RUN, 2)
    assert {outcome for outcome, _ in second.values()} == {"completed"}
    assert "p02/note" in second
    assert "draft.r2" not in second, "the critic accepts"
    assert not (project.root / "runs" / RUN / "it03").exists()


def test_what_products_report_is_told_in_tokens_and_dollars(
    flow: tuple[Project, subprocess.CompletedProcess[str]],
) -> None:
    project, done = flow
    last = [line for line in done.stderr.splitlines() if line.startswith("eop    spent")][-1]
    assert "at least 1000 tokens, at least 0.025 US dollars" in last, "two agents have crashed"
    status = project.eop("status").stdout
    assert "tokens: at least 1,000 spent, no limit; 2 attempts could not be metered" in status


def test_a_report_of_a_run_that_published_nothing_has_every_end(
    flow: tuple[Project, subprocess.CompletedProcess[str]],
) -> None:
    shown = reported(flow[0])
    assert {"All iterations", "Iteration 1"} < shown.categories.keys()
    labels = {
        result["labels"]["result"].partition(" ")[2]
        for path, result in shown.results.items()
        if "/it01/" in path
    }
    assert {"survey: failed", "draft: completed", "draft r2: completed"} <= labels
    assert {"compare r2: skipped", "sketch r2: failed", "refine r2: skipped"} <= labels
    assert "eop report" not in shown.printed


def test_the_run_verifies_and_what_is_no_candidate_is_no_entry(
    flow: tuple[Project, subprocess.CompletedProcess[str]],
) -> None:
    project, _ = flow
    done = project.eop("verify")
    assert done.returncode == 0, done.stderr
    assert json.loads(project.eop("leaderboard", "--json").stdout)["rows"] == []
