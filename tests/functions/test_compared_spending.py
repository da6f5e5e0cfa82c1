"""What `eop compare-runs` says that runs have spent, with memory and without."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import yaml
from click.testing import CliRunner
from function_runs import small

from eop.cli import cli
from eop.core.files import read_json, write_json
from eop.leaderboard import write_entry
from eop.runtime.node import Outcome, Usage

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
    metered = Usage(3, 1.0, tokens=700, micro_usd=250_000)
    on.play("it01_p02_implement", outcome=Outcome.FAILED, reason="no", usage=metered)
    for run in ("r1", "off"):
        row = candidate(f"{run}-base", run=run, kind="base", decision=None)
        write_entry(tmp_path, row, FILES)
    shown = ["--project", str(tmp_path), "compare-runs", "r1", "off"]
    data = json.loads(CliRunner().invoke(cli, [*shown, "--json"]).output)
    first, second = data["spent"]
    assert (first["memory"], second["memory"]) == (900, 0)
    # Every node that was played has three actions: five in the first run, two in the other.
    assert (first["actions"], second["actions"]) == (15, 6)
    # What nobody has counted is not 0, and a sum that lacks it is a lower bound.
    assert (first["tokens"], first["usd"]) == (700, 0.25)
    assert (second["tokens"], second["usd"]) == (None, None)
    assert first["unmetered"]["tokens"] > second["unmetered"]["tokens"] > 0
    [row] = [r for r in CliRunner().invoke(cli, shown).output.splitlines() if "tokens" in r]
    assert re.fullmatch(
        r" *tokens +at least 700 \(\d not metered\) +unknown \(\d not metered\) *", row
    )
    assert yaml.safe_load(CliRunner().invoke(cli, shown).output.splitlines()[-1]) is not None
