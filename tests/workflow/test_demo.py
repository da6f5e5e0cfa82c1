"""`eop demo` as a new user runs it, and what it promises: real patches, real numbers, real rows."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import networkx
import pytest
import yaml
from conftest import Project
from doc_pages import blocks, compared, shown

from eop.core.errors import EopError
from eop.driver.demo import make_project

RUN = "demo-synthetic"
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("demo")]


def entry(project: Project, name: str) -> dict[str, Any]:
    path = project.root / "leaderboard" / f"{RUN}-{name}" / "entry.yaml"
    found: dict[str, Any] = yaml.safe_load(path.read_text())
    return found


def test_it_answers_each_gate_aloud_and_ends_with_the_paths(demo: tuple[Project, str]) -> None:
    project, text = demo
    answered = re.findall(r"so it answers for you: touch (gates/\S+\.approved)", text)
    assert len(answered) == 5
    assert len(re.findall(r"echo '[^']+' > gates/\S+\.rejected", text)) == 1
    assert all((project.root / path).is_file() for path in answered)
    assert "run ended: completed" in text
    for path in (
        project.root / "leaderboard",
        project.root / "knowledge" / "notes",
        project.root / "knowledge" / "wiki",
        project.root / "runs" / RUN / "knowledge" / "graph.graphml",
        project.root / "runs" / RUN / "report.html",
    ):
        assert str(path) in text
        assert path.exists()


def test_modelling_beats_popularity(demo: tuple[Project, str]) -> None:
    project, _ = demo
    base, popularity = entry(project, "base"), entry(project, "popularity")
    for target in ("validation", "test"):
        assert base[target]["mean"]["ndcg@10"] > 1.5 * popularity[target]["mean"]["ndcg@10"]


def test_the_leak_is_caught_by_preflight_and_reviewer_and_mended(
    demo: tuple[Project, str],
) -> None:
    project, _ = demo
    node = project.root / "runs" / RUN / "it01/p01/implement"
    review = json.loads((node / "artifacts/review.json").read_text())
    first, second = review["rounds"]
    assert (first["verdict"], second["verdict"]) == ("fix", "approved")
    found = {finding["id"]: finding for finding in first["findings"]}
    assert {"check-I5", "lookup-of-targets"} <= set(found)
    report = json.loads((node / "work/02-check/a01/out/report.json").read_text())
    failed = {item["id"]: item for item in report["invariants"] if item["status"] != "passed"}
    assert "I5" in failed
    assert failed["I5"]["detail"] in found["check-I5"]["evidence"]
    row = entry(project, "it01-p01")
    assert row["outcome"] == "completed"
    assert row["evidence"]["preflight"] == {"passed": True, "failed": []}
    patch = (project.root / "leaderboard" / f"{RUN}-it01-p01" / "patch.diff").read_text()
    assert "genre_alpha" in patch


def test_a_config_change_has_no_patch(demo: tuple[Project, str]) -> None:
    project, _ = demo
    row = entry(project, "it01-p02")
    assert row["evidence"]["patch"] is None
    assert row["evidence"]["config"]["model"]["input_dropout"] == 0.05
    assert entry(project, "base")["evidence"]["config"]["model"]["input_dropout"] == 0.1


def test_a_worse_model_and_a_failed_node_are_rows(demo: tuple[Project, str]) -> None:
    project, _ = demo
    worse, failed = entry(project, "it02-p01"), entry(project, "it02-p02")
    assert worse["outcome"] == "completed"
    assert worse["decision"]["interval"][1] < 0, "worse by more than noise"
    assert failed["outcome"] == "failed"
    assert failed["validation"] is None
    assert failed["test"] is None
    assert failed["decision"]["delta"] is None
    assert "implement" in failed["reason"]
    note = (project.root / "knowledge/notes" / f"{RUN}-it02-p02.md").read_text()
    assert "not measured" in note


def test_every_row_has_a_note_and_its_evidence(demo: tuple[Project, str]) -> None:
    project, _ = demo
    rows = sorted((project.root / "leaderboard").glob("*/entry.yaml"))
    assert len(rows) == 6
    for path in rows:
        row = yaml.safe_load(path.read_text())
        assert (project.root / "knowledge/notes" / f"{row['id']}.md").is_file()
        for file in [*row["evidence"]["split"]["files"], *row["evidence"]["checkpoints"]]:
            assert (project.root / file["path"]).is_file()
            assert (project.root / f"{file['path']}.dvc").is_file()
    products = entry(project, "it01-p01")["evidence"]["products"]
    assert products["implement.implementer"]["name"] == "scripted"


def test_the_second_turn_builds_on_the_champion_and_knows_what_was_tried(
    demo: tuple[Project, str],
) -> None:
    project, _ = demo
    assert entry(project, "it01-p01")["decision"]["promoted"] is True
    assert entry(project, "it02-p01")["parent"] == f"{RUN}-it01-p01"
    work = project.root / "runs" / RUN / "it02/propose/work"
    prompt = next(work.rglob("prompt.md")).read_text()
    assert "What is known" in prompt
    assert "Half the dropout" in prompt
    assert "genre_alpha" in (work / "base/hstu/config/model.py").read_text()


def test_a_repeat_is_flagged_before_it_costs_anything(demo: tuple[Project, str]) -> None:
    project, text = demo
    repeated = f"half-the-dropout repeats {RUN}-it01-p02"
    assert f"flagged before it cost anything: {repeated}" in text
    run = project.root / "runs" / RUN
    first = json.loads((run / "it02/screen/artifacts/screening.json").read_text())
    assert [(one["note"], one["sign"]) for one in first["repeats"]] == [
        (f"{RUN}-it01-p02", "within_noise")
    ]
    again = json.loads((run / "it02/screen.r2/artifacts/screening.json").read_text())
    assert (again["repeats"], again["new"]) == ([], ["no-residual", "mixture-of-logits"])


def test_the_wiki_says_what_the_notes_carry_and_every_claim_stands(
    demo: tuple[Project, str],
) -> None:
    project, _ = demo
    page = (project.root / "knowledge/wiki/dropout.md").read_text()
    assert "says: 'Half the dropout: no difference beyond the noise in ndcg@10.'" in page
    assert "logits instead of the dot product: it came to no result.'" in "".join(
        path.read_text() for path in (project.root / "knowledge/wiki").iterdir()
    )
    done = project.eop("knowledge", "check")
    assert (done.returncode, done.stdout) == (0, "6 notes, 4 claims: every claim stands\n")
    graph = networkx.read_graphml(project.root / "runs" / RUN / "knowledge" / "graph.graphml")
    claim, note = f"claim:{RUN}-it01-p02", f"note:{RUN}-it01-p02"
    assert graph.has_edge("page:dropout", claim) and graph.has_edge(claim, note)
    report = (project.root / "runs" / RUN / "report.html").read_text()
    assert "Entity graph" in report and "knowledge/wiki/dropout.md" in report


def test_the_next_turn_is_told_the_directions_as_they_were_picked(
    demo: tuple[Project, str],
) -> None:
    project, _ = demo
    work = project.root / "runs" / RUN / "it02/propose/work"
    prompt = next(work.rglob("prompt.md")).read_text()
    assert "1. A richer score than one cosine" in prompt
    assert "Ranked here because: One vector per user is the one limit" in prompt


def test_no_agent_was_given_a_test_number(demo: tuple[Project, str]) -> None:
    project, _ = demo
    numbers = {
        f"{metrics['ndcg@10']:.6f}"
        for name in ("base", "popularity", "it01-p01", "it01-p02", "it02-p01")
        for metrics in [entry(project, name)["test"]["mean"]]
    }
    given = [
        path
        for path in (project.root / "runs" / RUN).rglob("*")
        if path.is_file() and ("inputs" in path.parts or path.name == "prompt.md")
    ]
    assert len(given) > 40
    for path in given:
        text = path.read_text(errors="replace")
        assert not [number for number in numbers if number[:8] in text], path


def test_the_trace_verifies_and_the_branch_is_untouched(demo: tuple[Project, str]) -> None:
    project, _ = demo
    assert project.eop("verify").returncode == 0
    log = project.command("git", "log", "--oneline").stdout.splitlines()
    assert len(log) == 1
    printed = (project.root / "runs" / RUN / "logs/it01_record.log").read_text()
    assert "git add" in printed


@pytest.mark.parametrize(
    "name",
    [
        f"leaderboard/{RUN}-it01-p01/entry.yaml",
        f"leaderboard/{RUN}-base/model-seed1.safetensors",
        f"knowledge/notes/{RUN}-it02-p02.md",
        "data/splits/synthetic/test.parquet",
    ],
)
def test_verify_finds_what_was_published_and_changed(demo: tuple[Project, str], name: str) -> None:
    project, _ = demo
    path = project.root / name
    content = path.read_bytes()
    path.write_bytes(content + b" ")
    try:
        done = project.eop("verify")
    finally:
        path.write_bytes(content)
    assert done.returncode == 7
    assert name in done.stderr


def test_the_report_needs_nothing_else(demo: tuple[Project, str]) -> None:
    project, _ = demo
    page = (project.root / "runs" / RUN / "report.html").read_text()
    assert not re.findall(r"""(?:src|href)=["']?https?:""", page)
    badges = re.findall(r'class="badge \w+">([^<]*)<', page)
    assert badges[0] == "ended: completed", "the run's own: the last call knows the end"
    for title in ("Genres as a side feature", "Blocks without the residual", "mixture of logits"):
        assert title.lower() in page.lower()


def test_status_and_leaderboard_as_text_and_data(demo: tuple[Project, str]) -> None:
    project, _ = demo
    assert "ended: completed" in project.eop("status").stdout
    assert json.loads(project.eop("status", "--json").stdout)["ended"] == "completed"
    rows = json.loads(project.eop("leaderboard", "--json").stdout)["rows"]
    assert next(row["entry"] for row in rows) == f"{RUN}-it01-p01"
    assert rows[-1]["test_ndcg@10"] is None


@pytest.mark.parametrize(
    ("page", "first", "argv"),
    [
        ("README.md", "synthetic, split", ("leaderboard",)),
        ("docs/statistics.md", "demo-synthetic, synthetic", ("leaderboard", "--summary")),
    ],
)
def test_what_pages_show_of_it_is_what_it_prints(
    demo: tuple[Project, str], page: str, first: str, argv: tuple[str, ...]
) -> None:
    [block] = [block for block in blocks(page) if block.first.startswith(first)]
    # The width of the terminal in which it was taken.
    printed = demo[0].command("env", "COLUMNS=80", sys.executable, "-m", "eop.cli", *argv).stdout
    assert shown(compared(block.text), compared(printed)), printed


def test_a_second_demo_replaces_the_first_and_nothing_else(
    demo: tuple[Project, str], tmp_path: Path
) -> None:
    project, _ = demo
    shutil.copytree(project.root, tmp_path / "again")
    make_project(tmp_path / "again")
    assert not (tmp_path / "again" / "runs").exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("three years")
    with pytest.raises(EopError, match="this folder is no demo"):
        make_project(tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.txt").is_file()


@pytest.fixture(scope="module")
def clone(demo: tuple[Project, str], tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A fresh clone of the demo's committed leaderboard, with the inputs from the DVC remote."""
    project, _ = demo
    project.command("git", "add", "leaderboard", "knowledge", "data")
    committed = project.command("git", "commit", "--quiet", "-m", "leaderboard")
    assert committed.returncode == 0, committed.stderr
    folder = tmp_path_factory.mktemp("clone") / "clone"
    subprocess.run(["git", "clone", "--quiet", project.root, folder], check=True)
    fresh = Project(folder)
    remote = str(project.root / ".dvc-remote")
    fresh.command(sys.executable, "-m", "dvc", "remote", "modify", "--local", "demo", "url", remote)
    pointers = [str(p.relative_to(folder)) for p in (folder / "data").rglob("*.dvc")]
    pulled = fresh.command(sys.executable, "-m", "dvc", "pull", "--quiet", *pointers)
    assert pulled.returncode == 0, pulled.stderr
    return fresh


def repro(project: Project, name: str) -> subprocess.CompletedProcess[str]:
    stage = f"leaderboard/{RUN}-{name}/dvc.yaml:reproduce"
    argv = ("dvc", "repro", "-f", "-s", "--no-run-cache", stage)
    # The stage calls `python`: that of the environment, as after `source .venv/bin/activate`.
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return project.command(sys.executable, "-m", *argv)


def test_dvc_reproduces_a_patched_entry_in_a_fresh_clone(clone: Project) -> None:
    done = repro(clone, "it01-p01")
    assert done.returncode == 0, done.stdout + done.stderr
    verdict = json.loads((clone.root / f"repro/{RUN}-it01-p01/verdict.json").read_text())
    assert verdict["reproduced"] is True
    assert verdict["identical"] is True


def test_snakemake_makes_an_entry_again(clone: Project) -> None:
    folder = f"repro/{RUN}-popularity"
    done = clone.snakemake("--config", "run=again", "--", f"{folder}/metrics.json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((clone.root / folder / "verdict.json").read_text())["identical"] is True


def test_a_wrong_recorded_metric_fails_the_reproduction(clone: Project) -> None:
    assert repro(clone, "popularity").returncode == 0
    folder = clone.root / f"leaderboard/{RUN}-popularity"
    row = yaml.safe_load((folder / "entry.yaml").read_text())
    row["test"]["mean"]["ndcg@10"] += 0.001
    (folder / "entry.yaml").write_text(yaml.safe_dump(row))
    assert "metrics.json does not say" in repro(clone, "popularity").stderr
    shown = json.loads((folder / "metrics.json").read_text())
    (folder / "metrics.json").write_text(json.dumps({**shown, "test": row["test"]}))
    done = repro(clone, "popularity")
    assert done.returncode != 0
    assert "was not reproduced" in done.stdout + done.stderr
    verdict = json.loads((clone.root / f"repro/{RUN}-popularity/verdict.json").read_text())
    assert verdict["reproduced"] is False


def test_a_changed_split_is_refused_before_training(clone: Project) -> None:
    path = clone.root / "data/splits/synthetic/train.parquet"
    content = path.read_bytes()
    path.write_bytes(content + b"\0")
    try:
        done = repro(clone, "it02-p01")
    finally:
        path.write_bytes(content)
    assert done.returncode != 0
    assert "the inputs are not those of the entry" in done.stdout + done.stderr
