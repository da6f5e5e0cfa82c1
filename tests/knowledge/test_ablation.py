from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from entry_samples import FILES, SHA, candidate, evidence, failed, project

from eop.cli import cli
from eop.core.files import write_json
from eop.evidence import FileRef
from eop.leaderboard import Decision, write_entry


def ranks(root, entry, gain, seeds=(1, 2)):
    """Ranks on disk of 400 users; every second one gains a place for each ``gain``."""
    chance = np.random.default_rng(7)
    files = []
    for seed in seeds:
        base = chance.integers(2, 30, 400)
        frame = pd.DataFrame({"user_id": range(400), "rank": np.maximum(1, base - gain)})
        path = root / f"leaderboard/{entry}/ranks-seed{seed}-validation.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        frame.to_parquet(path, index=False)
        files.append({**FileRef.of(path, root).to_json(), "seed": seed, "target": "validation"})
    return files


def publish(root, run, gain, digest=SHA):
    champion = f"{run}-it01-p01"
    split = {**evidence()["split"], "digest": digest}
    kept = evidence(ranks=ranks(root, champion, gain), split=split)
    write_entry(root, candidate(f"{run}-base", run=run, kind="base", decision=None), FILES)
    write_entry(root, candidate(champion, run=run, evidence=kept), FILES)
    write_entry(root, failed(f"{run}-it01-p02", run=run), {})
    worse = Decision(False, -0.01, (-0.02, -0.005), "worse")
    write_entry(root, candidate(f"{run}-it02-p01", run=run, iteration=2, decision=worse), FILES)


@pytest.fixture
def root(tmp_path):
    project(tmp_path)
    publish(tmp_path, "off", 0)
    publish(tmp_path, "on", 1)
    report = {"repeats": [{"proposal": "a"}, {"proposal": "a"}, {"proposal": "b"}]}
    write_json(tmp_path / "runs/on/it01/screen/artifacts/screening.json", report)
    return tmp_path


def compared(root, *arguments):
    return CliRunner().invoke(cli, ["--project", str(root), "compare-runs", *arguments])


def test_two_runs_are_counted_and_their_champions_compared_in_pairs(root):
    data = json.loads(compared(root, "off", "on", "--json").output)
    off, on = data["runs"]
    assert on == {
        "run": "on",
        "entries": 4,
        "candidates": 3,
        "promoted": 1,
        "not_better": 1,
        "failed": 1,
        "repeats": 2,
        "champion": "on-it01-p01",
    }
    assert off["repeats"] is None and data["spent"] == [None, None]
    champions = data["champions"]
    assert champions["seeds"] == [1, 2] and champions["delta"] > 0
    assert champions["interval"][0] > 0
    back = json.loads(compared(root, "on", "off", "--json").output)["champions"]
    assert back["delta"] == pytest.approx(-champions["delta"])
    text = compared(root, "off", "on").output
    assert "champion of on over that of off: +" in text and "unknown" in text


def test_other_data_are_not_compared_and_neither_is_what_is_missing(root):
    publish(root, "other", 1, "cd" * 32)
    assert "not compared: the splits differ" in compared(root, "off", "other").output
    (root / "leaderboard/on-it01-p01/ranks-seed1-validation.parquet").unlink()
    assert "missing; fetch it with `dvc pull`" in compared(root, "off", "on").output
    wrong = compared(root, "off", "nope")
    assert wrong.exception.code == "EOP684"
