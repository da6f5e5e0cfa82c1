from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from entry_samples import FILES, candidate, evidence, failed, project

from eop.evidence import Dvc
from eop.leaderboard import write_entry

REPRODUCE = [
    "repro",
    "-f",
    "-s",
    "--no-run-cache",
    "leaderboard/demo-it01-p01/dvc.yaml:reproduce",
]
CLI = """
import pathlib, sys
folder, out = pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
out.mkdir(parents=True, exist_ok=True)
(out / "metrics.json").write_bytes((folder / "metrics.json").read_bytes())
(out / "verdict.json").write_text("{}")
"""


def test_the_stage_depends_on_the_record_and_never_writes_it(tmp_path):
    root = project(tmp_path)
    text = (write_entry(root, candidate(), FILES) / "dvc.yaml").read_text()
    stage = yaml.safe_load(text)["stages"]["reproduce"]
    assert stage["wdir"] == "../.."
    assert stage["cmd"] == (
        "exec python -m eop.cli reproduce leaderboard/demo-it01-p01 repro/demo-it01-p01"
    )
    assert stage["deps"] == [
        "leaderboard/demo-it01-p01/entry.yaml",
        "leaderboard/demo-it01-p01/config.yaml",
        "leaderboard/demo-it01-p01/patch.diff",
        "leaderboard/demo-it01-p01/metrics.json",
        "data/splits/toy/train.parquet",
        "data/snapshots/abc.tar",
    ]
    outs = [name for out in stage["outs"] for name in out]
    assert all(name.startswith("repro/demo-it01-p01/") for name in outs)
    assert all(out[name] == {"cache": False} for out in stage["outs"] for name in out)


def test_no_stage_for_what_cannot_be_reproduced(tmp_path):
    folder = write_entry(project(tmp_path), failed(), {})
    assert not (folder / "dvc.yaml").exists()
    reference = candidate(evidence=evidence(patch=None, snapshot=None))
    folder = write_entry(tmp_path, reference, {})
    deps = yaml.safe_load((folder / "dvc.yaml").read_text())["stages"]["reproduce"]["deps"]
    assert deps[-1] == "data/splits/toy/train.parquet"
    assert not any("patch" in dep for dep in deps)


@pytest.mark.parametrize("rc", [0, 1])
def test_dvc_runs_the_stage(tmp_path, rc):
    root = project(tmp_path)
    Dvc(root).init()
    (root / "eop").mkdir()
    (root / "eop" / "__init__.py").touch()
    (root / "eop" / "cli.py").write_text(CLI + f"sys.exit({rc})\n")
    for path in ("data/splits/toy/train.parquet", "data/snapshots/abc.tar"):
        (root / path).parent.mkdir(parents=True)
        (root / path).write_bytes(b"bytes")
    folder = write_entry(root, candidate(), FILES)
    before = (folder / "metrics.json").read_bytes()
    done = subprocess.run(
        [sys.executable, "-m", "dvc", *REPRODUCE],
        cwd=root,
        env={
            **os.environ,
            "DVC_NO_ANALYTICS": "1",
            "DVC_SITE_CACHE_DIR": str(tmp_path / "site"),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        },
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode == 0) == (rc == 0), done.stderr
    assert (folder / "metrics.json").read_bytes() == before
    assert (root / "repro/demo-it01-p01/metrics.json").read_bytes() == before
    assert (folder / "dvc.lock").exists() == (rc == 0)
