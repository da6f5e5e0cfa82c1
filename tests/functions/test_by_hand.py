"""The rules `train` and `evaluate`, and preflight of a tree that is still being worked on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from fake_hstu import split, tree
from function_runs import small

from eop.core.errors import EopError
from eop.core.files import write_json, write_text
from eop.functions import standalone
from eop.functions.branches import failures
from eop.functions.candidate import check_tree

if TYPE_CHECKING:
    from pathlib import Path

    from eop.functions.context import Context

AT = {"split": "data/splits/toy/manifest.json", "threads": 1}
CHECKPOINT = "runs/experiments/toy/mine/checkpoint.json"
METRICS = "runs/experiments/toy/mine/metrics.json"


def project(root: Path) -> Path:
    tree(root)
    split(root / "data/splits/toy")
    write_text(root / "mine.yaml", "one")
    return root


def test_an_edited_experiment_is_trained_and_judged_anew(tmp_path: Path) -> None:
    root = project(tmp_path)
    for words in ("one", "two"):
        write_text(root / "mine.yaml", words)
        (root / "data/splits/toy/train.parquet").write_text(words)
        standalone.train(root, experiment="mine.yaml", checkpoint=CHECKPOINT, **AT)
        standalone.evaluate(root, checkpoint=CHECKPOINT, metrics=METRICS, **AT)
        assert json.loads((root / CHECKPOINT).read_text()) == {"plan": [words]}
        zone = (root / CHECKPOINT).parent / "zone"
        assert (zone / "train.parquet").read_text() == words
    calls = ((root / CHECKPOINT).parent / "calls.txt").read_text().splitlines()
    assert calls == ["train 1", "evaluate validation"] * 2


def test_by_hand_a_candidate_s_failure_is_the_command_s(tmp_path: Path) -> None:
    root = project(tmp_path)
    write_text(root / "mine.yaml", "stderr exit1")
    with pytest.raises(EopError, match=r"EOP680.*the experiment failed"):
        standalone.train(root, experiment="mine.yaml", checkpoint=CHECKPOINT, **AT)
    assert not (root / CHECKPOINT).exists()


def context(root: Path) -> Context:
    run = small(project(root))
    write_json(run.project.split_dir / "manifest.json", {})
    tree(run.project.run_dir / "trees" / "base")
    run.to_branches()
    return run.context("it01_p01_implement")


def workspace(root: Path, *words: str) -> Path:
    made = tree(root)
    if words:
        write_text(made / "experiment.yaml", " ".join(words))
    return made


def checked(context: Context, work: Path) -> dict[str, object]:
    report: dict[str, object] = json.loads(check_tree(context, work, work.parent).read_text())
    return report


def test_what_was_checked_is_not_checked_again_anywhere(tmp_path: Path) -> None:
    at = context(tmp_path)
    first = checked(at, workspace(tmp_path / "a" / "tree", "bad"))
    assert first["passed"] is False
    assert "I5 (one score): two" in failures(first)
    assert checked(at, workspace(tmp_path / "b" / "tree", "bad")) == first
    assert not (tmp_path / "b" / "calls.txt").exists()
    changed = workspace(tmp_path / "c" / "tree", "bad")
    write_text(changed / "hstu" / "__pycache__" / "model.pyc", "bytecode that Python would run")
    checked(at, changed)
    assert (tmp_path / "c" / "calls.txt").exists(), "bytecode is part of what runs"


@pytest.mark.parametrize("words", [("exit1",), ("garbage",), ()])
def test_a_tree_that_does_not_start_gets_a_report(tmp_path: Path, words: tuple[str, ...]) -> None:
    at = context(tmp_path)
    report = checked(at, workspace(tmp_path / "a" / "tree", *words))
    assert report["passed"] is False
    assert failures(report).startswith("I0 (the checks start)")
    kept = at.project.run_dir / "preflight"
    assert not kept.exists() or not list(kept.iterdir()), "only reports of the checks are kept"
