"""The split stages of dvc.yaml: what rule `split` makes, beside the pointers of DVC."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from conftest import ROOT

from eop.evidence import Dvc
from eop.functions.split import make_split
from hstu.data.readers import read_source
from hstu.data.sources import SOURCES
from hstu.data.split import FILES, SplitOptions, write_split
from hstu.data.synthetic import synthesize

SPLIT = Path("data/splits/synthetic")


def test_every_data_set_that_is_known_has_a_stage() -> None:
    stages = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]
    assert stages["split"]["foreach"] == sorted({*SOURCES, "synthetic"})


def dvc(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        [sys.executable, "-m", "dvc", *arguments],
        cwd=root,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "DVC_NO_ANALYTICS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty project with the repository's stages."""
    root = tmp_path / "project"
    root.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    shutil.copy(ROOT / "dvc.yaml", root)
    Dvc(root).init()
    return root


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_stage_makes_what_the_rule_makes_and_lives_with_the_pointers(
    root: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "hstu").symlink_to(ROOT / "hstu")
    make_split(other, "synthetic", "data/raw/synthetic")
    made = dvc(root, "repro", "-q", "split@synthetic")
    assert made.returncode == 0, made.stderr
    assert contents(root / SPLIT) == contents(other / SPLIT)

    # `record` stores the files; the stage and the pointers own different paths.
    stored = Dvc(root).add([f"{SPLIT}/{name}" for name in FILES])
    before = contents(root / SPLIT)
    assert {file.pointer for file in stored} == {f"{SPLIT}/{name}.dvc" for name in FILES}
    status = dvc(root, "status", "-q", "split@synthetic", *(file.pointer for file in stored))
    assert status.returncode == 0, status.stdout + status.stderr
    (root / SPLIT / "test.parquet").unlink()
    again = dvc(root, "repro", "-q", "-f", "-s", "split@synthetic")
    assert again.returncode == 0, again.stderr
    assert contents(root / SPLIT) == before
    assert not list((root / ".dvc" / "cache").rglob("*.dir")), "raw data are never stored"


def test_other_raw_data_are_refused_where_a_split_is(root: Path) -> None:
    raw = root / "data" / "raw" / "synthetic"
    synthesize(8, raw)
    write_split(read_source(raw), "synthetic", root / SPLIT, SplitOptions())
    before = contents(root / SPLIT)
    shutil.rmtree(raw)
    refused = dvc(root, "repro", "-q", "split@synthetic")
    assert refused.returncode != 0
    assert "another split of synthetic is here" in refused.stderr
    assert contents(root / SPLIT) == before
    absent = dvc(root, "repro", "split@ml-1m")
    assert "data/raw/ml-1m" in absent.stderr
