"""The demo's changes as whole trees: the leak runs but fails preflight, its repair passes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from planted import CONFIG, PLAYBOOK, ROOT, make_split

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_split(tmp_path_factory.mktemp("data"))


def tree_with(folder: Path, *names: str) -> Path:
    """A copy of the package with the demo's edits applied, each to text that occurs once."""
    shutil.copytree(ROOT / "hstu", folder / "hstu", ignore=shutil.ignore_patterns("__pycache__"))
    for name in names:
        for edit in yaml.safe_load((PLAYBOOK / f"{name}.yaml").read_text()):
            path = folder / edit["file"]
            text = path.read_text()
            assert text.count(edit["find"]) == 1, (name, edit["find"])
            path.write_text(text.replace(edit["find"], edit["replace"]))
    return folder


def config_with(folder: Path, **model: Any) -> Path:
    data = yaml.safe_load(CONFIG.read_text())
    data["model"] |= model
    path = folder / "experiment.yaml"
    path.write_text(yaml.safe_dump(data))
    return path


def hstu(tree: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hstu", *map(str, arguments)],
        cwd=tree,
        env=os.environ | {"PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
        check=False,
    )


def failures(tree: Path, config: Path, split: Path) -> dict[str, str]:
    """Status of the invariants that the tree does not pass; the exit status must agree."""
    out = tree / "preflight.json"
    done = hstu(tree, "preflight", "--config", config, "--data", split, "--out", out)
    report = json.loads(out.read_text())
    assert done.returncode == (0 if report["passed"] else 1), done.stderr
    return {i["id"]: i["status"] for i in report["invariants"] if i["status"] != "passed"}


def test_the_leaking_genres_run_but_fail_preflight(tmp_path: Path, split: Path) -> None:
    tree = tree_with(tmp_path, "genre-leaky")
    assert failures(tree, config_with(tmp_path, genre_alpha=0.5), split) == {
        "I5": "failed",
        "I8": "failed",
    }


def test_the_mended_genres_pass_preflight(tmp_path: Path, split: Path) -> None:
    tree = tree_with(tmp_path, "genre-leaky", "genre-input-only")
    assert failures(tree, config_with(tmp_path, genre_alpha=0.5), split) == {}


def test_changes_can_be_stacked(tmp_path: Path) -> None:
    """The champion of the first turn carries the mended genres into the second."""
    tree_with(tmp_path, "genre-leaky", "genre-input-only", "no-residual")


def test_a_tree_that_cannot_be_imported_gets_a_report(tmp_path: Path, split: Path) -> None:
    tree = tree_with(tmp_path)
    (tree / "hstu" / "models" / "hstu.py").write_text("def broken(:\n")
    assert list(failures(tree, CONFIG, split).values()) == ["error"] * 7
