"""What a Snakemake user expects: dry runs, pictures, lists, config on the command line, guards."""

from __future__ import annotations

import fcntl
import json
from typing import TYPE_CHECKING

import pytest
from conftest import MINIMAL
from report_reader import reported

if TYPE_CHECKING:
    from conftest import Project


def test_dry_run_runs_nothing(fresh: Project) -> None:
    done = fresh.snakemake("-n")
    assert done.returncode == 0, done.stderr
    assert "it01_look" in done.stdout + done.stderr
    assert not (fresh.root / "data" / "splits").exists()
    assert not (fresh.root / "runs/minimal-synthetic/it01").exists()


def test_list_rules_and_rulegraph(project: Project) -> None:
    project.answer("agree")
    listed = project.snakemake("--list-rules").stdout.split()
    assert {"all", "split", "it01_look", "it01_agree", "it01_advise"} <= set(listed)
    graph = project.snakemake("--rulegraph", "mermaid-js")
    assert graph.returncode == 0
    assert "it01_look" in graph.stdout
    assert "GATE" not in graph.stdout, "messages must not spoil what is piped on"


def test_values_of_config_on_the_command_line_count(fresh: Project) -> None:
    done = fresh.snakemake("-n", "--config", "run=second")
    assert done.returncode == 0
    written = json.loads((fresh.root / "runs" / "second" / "config.json").read_text())
    assert written["run"] == "second"


@pytest.mark.parametrize("flag", ["--forceall", "-R it01_look", "--touch"])
def test_flags_that_forget_are_refused(project: Project, flag: str) -> None:
    done = project.snakemake(*flag.split())
    assert done.returncode == 2
    assert "refused" in done.stderr
    assert "allow_unsafe=1" in done.stderr


def test_forcing_finished_work_adopts_it_instead_of_repeating_it(project: Project) -> None:
    before = len(project.events())
    done = project.snakemake("--forceall", "--config", "allow_unsafe=1")
    assert done.returncode == 0, done.stderr
    assert len(project.events()) == before, "no node ran again"


def test_a_deleted_outcome_is_written_again_from_the_trace(project: Project) -> None:
    path = project.root / "runs/minimal-synthetic/it01/look/outcome.json"
    text = path.read_text()
    path.unlink()
    assert project.snakemake().returncode == 0
    assert path.read_text() == text


def test_a_second_run_on_the_same_project_is_refused(project: Project) -> None:
    with (project.root / "runs" / ".lock").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = project.snakemake()
        assert done.returncode == 8
        assert "another run is active" in done.stderr
        compiled = project.eop("compile")
    assert compiled.returncode == 8


def test_a_report_begins_no_run(fresh: Project) -> None:
    done = fresh.snakemake("--report", "report.html")
    assert done.returncode == 7
    assert "error[EOP814] no run 'minimal-synthetic' has begun" in done.stderr
    assert not (fresh.root / "runs" / "minimal-synthetic").exists()
    assert not (fresh.root / "report.html").exists()


def test_a_report_at_a_gate_shows_what_has_left_and_decides_nothing(project: Project) -> None:
    project.answer("agree")
    # What it is about was pinned when it began, so that later edits do not hinder a report.
    protocol = project.root / MINIMAL
    protocol.write_text(protocol.read_text() + "\nA later thought.\n")
    shown = reported(project)
    assert shown.categories.keys() == {"All iterations", "Iteration 1"}
    assert shown.labels("Iteration 1", "Steps") == ["01 look: completed"]
    assert shown.labels("Iteration 1", "Overview") == ["rows, steps and gates"]
    assert shown.labels("All iterations", "Overview") == ["the page of the run"]
    look = shown.results["runs/minimal-synthetic/it01/look/outcome.json"]
    assert look["job_properties"]["rule"] == "it01_look"
    assert "How a step of the protocol ended" in look["caption"]
    assert "GATE" not in shown.printed
    assert "would" not in shown.printed
    assert "Traceback" not in shown.printed
    (project.root / "runs/minimal-synthetic/it01/look/outcome.json").unlink()
    rest = reported(project)
    assert rest.categories["Iteration 1"].keys() == {"Overview"}, "what is lost hinders nothing"


def test_touching_the_target_code_reruns_nothing(project: Project) -> None:
    for path in (project.root / "hstu").rglob("*.py"):
        path.touch()
    for path in (project.root / "scripts").glob("*.py"):
        path.touch()
    assert "Nothing to be done" in project.snakemake().stderr


def test_one_experiment_by_hand(project: Project) -> None:
    """The rules `train` and `evaluate`, outside any protocol."""
    config = (project.root / "config/experiments/synthetic.yaml").read_text()
    lines = ["  epochs: 1" if "epochs:" in line else line for line in config.splitlines()]
    (project.root / "config/experiments/quick.yaml").write_text("\n".join(lines) + "\n")
    target = "runs/experiments/synthetic/quick/metrics.json"
    done = project.snakemake(target)
    assert done.returncode == 0, done.stderr
    metrics = json.loads((project.root / target).read_text())
    assert metrics["target"] == "validation"
    assert 0 < metrics["metrics"]["ndcg@10"] < 1
