"""What `eop compare-runs` says that runs have spent, with memory and without."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import yaml
from click.testing import CliRunner
from function_runs import small

from eop.cli import cli
from eop.core.files import read_json, write_json
from eop.leaderboard import write_entry

sys.path.insert(0, str(Path(__file__).parents[1] / "leaderboard"))
from entry_samples import FILES, candidate, project


def test_memory_and_spend_of_each_run_stand_side_by_side(tmp_path: Path) -> None:
    project(tmp_path)
    on = small(tmp_path, memory=900)
    on.to_branches()
    shutil.copytree(tmp_path / "runs/r1", tmp_path / "runs/off")
    config = read_json(tmp_path / "runs/off/config.json")
    write_json(tmp_path / "runs/off/config.json", {**config, "run": "off", "memory": 0})
    on.lose("p01")
    for run in ("r1", "off"):
        row = candidate(f"{run}-base", run=run, kind="base", decision=None)
        write_entry(tmp_path, row, FILES)
    shown = ["--project", str(tmp_path), "compare-runs", "r1", "off"]
    data = json.loads(CliRunner().invoke(cli, [*shown, "--json"]).output)
    first, second = data["spent"]
    assert (first["memory"], second["memory"]) == (900, 0)
    # Every node that was played has three actions: four in the first run, two in the other.
    assert (first["actions"], second["actions"]) == (12, 6)
    assert yaml.safe_load(CliRunner().invoke(cli, shown).output.splitlines()[-1]) is not None
