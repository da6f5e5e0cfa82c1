"""The protocol `hstu-recipes` as shipped, on two small recipes, under the real Snakemake."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import ROOT, Project, copy_sources

RUN = "hstu-recipes-synthetic"
PROTOCOL = "config/protocols/hstu-recipes.eop.md"
RECIPES = {
    "tuned": "# Go on with a third of the learning rate. It may settle\n# better.\n"
    "train: {learning_rate: 0.0015}\n",
    "typo": "# A setting that nobody knows.\nmodel: {dimm: 8}\n",
    "unsafe": "# Targets are told by their genres.\n"
    "interventions: {side_features: {genre: 0.5, control: {leak: true}}}\n",
}
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("recipes")]


def command(project: Project, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`python -m MODULE ARGUMENTS` in the project, with time for a busy machine."""
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=project.root,
        env={
            **os.environ,
            "PYTHONPATH": str(project.root),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose recipes have been measured: one epoch each, two seeds for the base."""
    project = copy_sources(tmp_path_factory.mktemp("recipes") / "project")
    folder = project.root / "config" / "recipes"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, text in RECIPES.items():
        (folder / f"{name}.yaml").write_text(text)
    protocol = project.root / PROTOCOL
    text = protocol.read_text().replace("seeds: [1, 2, 3]", "seeds: [1, 2]")
    protocol.write_text(re.sub(r"from: \{.*\}", "from: {tuned: base}", text))
    base = project.root / "config" / "experiments" / "synthetic.yaml"
    base.write_text(re.sub(r"epochs: \d+", "epochs: 1", base.read_text()))
    done = command(project, "eop.cli", "run", "--cores", "2", "--config", f"protocol={PROTOCOL}")
    assert done.returncode == 0, done.stdout + done.stderr
    return project


def entry(project: Project, name: str) -> dict[str, Any]:
    path = project.root / "leaderboard" / f"{RUN}-{name}" / "entry.yaml"
    found: dict[str, Any] = yaml.safe_load(path.read_text())
    return found


def test_a_recipe_is_an_entry_compared_with_the_base(measured: Project) -> None:
    row, base = entry(measured, "it01-p01"), entry(measured, "base")
    assert row["proposal"] == {
        "id": "tuned",
        "title": "Go on with a third of the learning rate",
        "hypothesis": "Go on with a third of the learning rate. It may settle better.",
    }
    assert (row["outcome"], row["parent"]) == ("completed", f"{RUN}-base")
    assert row["evidence"]["patch"] is None
    expected = json.loads(json.dumps(base["evidence"]["config"]))
    expected["train"]["learning_rate"] = 0.0015
    assert row["evidence"]["config"] == expected
    assert (list(base["test"]["seeds"]), list(row["test"]["seeds"])) == (["1", "2"], ["1"])
    decision = row["decision"]
    assert decision["seeds"] == [1]
    own, other = (side["validation"]["seeds"]["1"]["ndcg@10"] for side in (row, base))
    assert decision["delta"] == pytest.approx(own - other)
    assert decision["interval"][0] < decision["delta"] < decision["interval"][1]
    own, other = (side["test"]["seeds"]["1"]["ndcg@10"] for side in (row, base))
    assert row["on_test"]["delta"] == pytest.approx(own - other)
    for file in row["evidence"]["ranks"]:
        assert (measured.root / f"{file['path']}.dvc").is_file()
    assert (measured.root / "knowledge/notes" / f"{RUN}-it01-p01.md").is_file()


def test_a_recipe_that_the_model_refuses_is_a_row_too(measured: Project) -> None:
    row = entry(measured, "it01-p02")
    assert (row["proposal"]["id"], row["outcome"], row["test"]) == (
        "typo",
        "rejected_by_preflight",
        None,
    )
    assert "dimm" in row["reason"]
    assert row["test_reads"] == 0


def test_a_recipe_that_does_not_pass_preflight_is_a_row_and_no_training(measured: Project) -> None:
    row = entry(measured, "it01-p03")
    assert (row["outcome"], row["validation"], row["not_reproducible"]) == (
        "rejected_by_preflight",
        None,
        None,
    )
    assert "I5" in row["evidence"]["preflight"]["failed"]
    assert "I5 (" in row["reason"]
    branch = measured.root / "runs" / RUN / "it01/p03"
    outcomes = {
        step: json.loads((branch / step / "outcome.json").read_text())
        for step in ("preflight", "train", "refit")
    }
    assert outcomes["preflight"]["outcome"] == "completed"
    assert outcomes["train"]["reason"] == "its guard is false: preflight.passed"
    assert outcomes["refit"]["outcome"] == "skipped"
    assert not (branch / "train/work").exists()
    rows = json.loads(measured.eop("leaderboard", "--json").stdout)["rows"]
    assert {row["entry"]: row["outcome"] for row in rows} == {
        f"{RUN}-base": "completed",
        f"{RUN}-popularity": "completed",
        f"{RUN}-it01-p01": "completed",
        f"{RUN}-it01-p02": "rejected_by_preflight",
        f"{RUN}-it01-p03": "rejected_by_preflight",
    }


@pytest.mark.parametrize("name", ["base", "it01-p01"])
def test_the_test_is_read_once_by_weights_of_its_own(measured: Project, name: str) -> None:
    row = entry(measured, name)
    assert row["test_reads"] == 1
    files = {Path(file["path"]).name: file for file in row["evidence"]["checkpoints"]}
    for seed in row["test"]["seeds"]:
        selected, refit = f"model-seed{seed}.safetensors", f"model-seed{seed}-refit.safetensors"
        assert files[selected]["targets"] == ["validation"]
        assert files[refit]["targets"] == ["test"]
        assert files[selected]["sha256"] != files[refit]["sha256"]
        for file in (selected, refit):
            assert (measured.root / "leaderboard" / row["id"] / f"{file}.dvc").is_file()
    assert (measured.root / "leaderboard" / row["id"] / "curve-refit.tsv").is_file()


def test_the_refit_comes_after_the_judgement_and_sees_no_test_event(measured: Project) -> None:
    order = [(event["type"], event["data"].get("node")) for event in measured.recorded(RUN)]
    assert order.index(("node_left", "it01_p01_evaluate")) < order.index(
        ("node_entered", "it01_p01_refit")
    )
    work = measured.root / "runs" / RUN / "it01"
    seen = {path.name for path in (work / "p01/refit/work/refit/zone-refit").iterdir()}
    assert seen == {"train.parquet", "validation.parquet", "items.parquet"}
    assert not list((work / "p01/train/work").rglob("validation.parquet"))
    assert not list((work / "p01/evaluate/work").rglob("*-test"))


def test_a_fine_tuning_begins_with_the_base_s_weights(measured: Project) -> None:
    row, base = entry(measured, "it01-p01"), entry(measured, "base")
    assert (row["outcome"], row["reason"]) == ("completed", "")
    assert row["evidence"]["start"] == {"of": "base", "config": base["evidence"]["config"]}
    work = measured.root / "runs" / RUN / "it01/p01"
    trained = {Path(file["path"]).name: file["sha256"] for file in base["evidence"]["checkpoints"]}
    for phase, folder, mark in (("train", "seed1", ""), ("refit", "refit/seed1-refit", "-refit")):
        side = json.loads((work / phase / "work" / folder / "checkpoint.json").read_text())
        (start,) = (measured.root / "runs" / RUN / "starts").glob(f"*/seed1{mark}")
        weights = hashlib.sha256((start / "model.safetensors").read_bytes()).hexdigest()
        assert weights == trained[f"model-seed1{mark}.safetensors"], "the same bits as the base's"
        assert weights in json.dumps(side)


def test_nothing_is_promoted_on_one_seed_and_the_run_verifies(measured: Project) -> None:
    path = measured.root / "runs" / RUN / "it01/promote/artifacts/decision.json"
    assert json.loads(path.read_text())["champion"] == f"{RUN}-base"
    done = measured.eop("verify")
    assert done.returncode == 0, done.stderr
    assert "ended: completed" in measured.eop("status").stdout


def test_dvc_reproduces_both_numbers_of_a_fine_tuning(measured: Project) -> None:
    name = "it01-p01"
    stage = f"leaderboard/{RUN}-{name}/dvc.yaml:reproduce"
    done = command(measured, "dvc", "repro", "-f", "-s", "--no-run-cache", stage)
    assert done.returncode == 0, done.stdout + done.stderr
    out = measured.root / "repro" / f"{RUN}-{name}"
    assert json.loads((out / "verdict.json").read_text())["identical"] is True
    again, row = json.loads((out / "metrics.json").read_text()), entry(measured, name)
    for target in ("validation", "test"):
        assert again[target]["1"] == row[target]["seeds"]["1"]


def test_the_shipped_recipes_can_be_listed() -> None:
    from eop.functions.recipes import read_recipe

    for path in (ROOT / "config" / "recipes").glob("*.yaml"):
        assert read_recipe(path, path.name)["title"]
