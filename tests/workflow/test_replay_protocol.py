"""The protocol `replay` as shipped: a champion's recipe and patch, unedited, on two data sets."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from conftest import copy_sources

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Project

PROTOCOL = "config/protocols/replay.eop.md"
LINE = "    def embed_inputs("
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("replay")]


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project that has replayed one champion on two data sets: one epoch, two seeds."""
    project = copy_sources(tmp_path_factory.mktemp("replay") / "project")
    folder = project.root / "config/recipes/champions"
    folder.mkdir(parents=True)
    (folder / "settled.yaml").write_text(
        "# Half the learning rate.\ntrain: {learning_rate: 0.002}\n"
    )
    (folder / "settled.patch").write_text(harmless_patch(project.root))
    protocol = project.root / PROTOCOL
    text = protocol.read_text().replace("seeds: [1, 2, 3], twins: [1]", "seeds: [1, 2], twins: [1]")
    text = text.replace("seeds: [1, 2, 3]", "seeds: [1, 2]").replace("seeds: 3}", "seeds: 2}")
    protocol.write_text(text)
    experiments = project.root / "config/experiments"
    base = re.sub(r"epochs: \d+", "epochs: 1", (experiments / "synthetic.yaml").read_text())
    for name in ("synthetic", "base"):
        (experiments / f"{name}.yaml").write_text(base)
    made = project.command(
        *(sys.executable, "-m", "hstu", "data", "synthesize", "--seed", "11"),
        *("--out", "data/raw/elsewhere"),
    )
    assert made.returncode == 0, made.stderr
    for dataset in ("synthetic", "elsewhere"):
        argv = ("run", "--cores", "2", "--config", f"protocol={PROTOCOL}")
        done = project.eop(*argv, "--config", f"dataset={dataset}")
        assert done.returncode == 0, done.stdout + done.stderr
    return project


def harmless_patch(root: Path) -> str:
    """A patch of the model that changes no number: a comment where inputs are embedded."""
    path = root / "hstu/models/hstu.py"
    before = path.read_text()
    path.write_text(before.replace(LINE, f"    # Replayed.\n{LINE}", 1))
    name = "hstu/models/hstu.py"
    (root / "before.py").write_text(before)
    argv = ["git", "diff", "--no-index", "--no-prefix", "--", "before.py", name]
    text = subprocess.run(argv, cwd=root, capture_output=True, text=True, check=False).stdout
    path.write_text(before)
    (root / "before.py").unlink()
    assert "+    # Replayed." in text
    body = text[text.index("@@") :]
    return f"diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n{body}"


def entry(project: Project, dataset: str, name: str) -> dict[str, Any]:
    path = project.root / f"leaderboard/replay-{dataset}-{name}/entry.yaml"
    found: dict[str, Any] = yaml.safe_load(path.read_text())
    return found


@pytest.mark.parametrize("dataset", ["synthetic", "elsewhere"])
def test_the_recipe_runs_as_it_was_exported(replayed: Project, dataset: str) -> None:
    row, base = entry(replayed, dataset, "it01-p01"), entry(replayed, dataset, "base")
    assert (row["outcome"], row["reason"]) == ("completed", "")
    folder = replayed.root / "config/recipes/champions"
    patch = replayed.root / f"leaderboard/{row['id']}/patch.diff"
    assert patch.read_bytes() == (folder / "settled.patch").read_bytes()
    expected = json.loads(json.dumps(base["evidence"]["config"]))
    expected["train"]["learning_rate"] = 0.002
    assert row["evidence"]["config"] == expected
    assert (row["test_reads"], row["decision"]["seeds"]) == (1, [1, 2])
    decision = row["decision"]
    assert decision["p_adjusted"] == decision["p"], "one recipe, one test"
    assert decision["band"] > 0


def test_the_gains_of_both_data_sets_stand_beside_each_other(replayed: Project) -> None:
    done = replayed.eop("champion", "gains", "--json")
    found = {gain["dataset"]: gain for gain in json.loads(done.stdout)["gains"]}
    assert set(found) == {"synthetic", "elsewhere"}
    for dataset, gain in found.items():
        own, base = (entry(replayed, dataset, name) for name in ("it01-p01", "base"))
        assert gain["ndcg"] == own["test"]["mean"]["ndcg@10"]
        assert gain["base"] == base["test"]["mean"]["ndcg@10"]
        low, high = gain["interval"]
        assert low < gain["difference"] < high
    splits = {entry(replayed, name, "base")["evidence"]["split"]["digest"] for name in found}
    assert len(splits) == 2


def test_a_twin_on_one_processor_is_the_same_to_the_last_bit(replayed: Project) -> None:
    path = replayed.root / "runs/replay-elsewhere/it01/baseline/artifacts/baseline.json"
    noise = json.loads(path.read_text())["noise"]
    assert (noise["twins"], noise["twin"]) == ([1], 0.0)


def test_every_row_keeps_its_evidence(replayed: Project) -> None:
    done = replayed.eop("evidence", "verify")
    assert done.returncode == 0, done.stderr
    assert "6 rows: all hold" in done.stdout
