"""Entries from results: missing is missing, seed 0 is a seed, a sum with a gap is unknown."""

from __future__ import annotations

import math
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from decided_run import decided
from function_runs import Small, metrics, small

from eop.functions import publish, record
from eop.functions.commit import commit_or_print
from eop.functions.results import candidates
from eop.functions.turn_noise import TurnNoise
from eop.leaderboard import read_entry
from eop.runtime.node import Outcome, Usage

if TYPE_CHECKING:
    from pathlib import Path


def test_every_end_becomes_a_row(tmp_path: Path) -> None:
    run = decided(tmp_path, processes=4)
    report = publish.publish(run.context("it01_publish"))
    names = ["r1-base", "r1-popularity", "r1-it01-p01", "r1-it01-p02"]
    assert [name for name in names if f'"{name}"' in report.read_text()] == names
    good, bad = read_entry(tmp_path, names[2]), read_entry(tmp_path, names[3])
    assert good.validation is not None
    assert good.test is not None
    assert good.test.mean["ndcg@10"] == 0.2
    assert set(good.test.seeds) == {"1", "2"}
    assert (good.cost.actions, good.cost.wall_s, good.cost.train_s) == (15, 5.0, 1.5)
    assert (bad.outcome, bad.validation, bad.test, bad.test_reads) == ("failed", None, None, 0)
    assert bad.cost.train_s is None
    assert good.evidence["environment"]["processes"] == {"train": 4}
    base, popularity = (read_entry(tmp_path, name).evidence["environment"] for name in names[:2])
    assert base["processes"] == {"train": 1}
    assert "processes" not in popularity | bad.evidence["environment"], "they train nothing"
    # Neither users nor seeds differ in their ranks: the interval is a point.
    assert good.test.interval == pytest.approx((1 / math.log2(6),) * 2)
    # Every user has rank 5 with the candidate and rank 10 with the base, on either seed.
    assert good.on_test is not None
    assert good.on_test.seeds == (1, 2)
    assert good.on_test.delta == pytest.approx(1 / math.log2(6) - 1 / math.log2(11))
    assert "On the test" in (tmp_path / f"knowledge/notes/{good.id}.md").read_text()
    assert bad.on_test is None
    kept = {(file["seed"], file["target"]): file for file in good.evidence["ranks"]}
    assert set(kept) == {(seed, target) for seed in (1, 2) for target in ("validation", "test")}
    assert all((tmp_path / file["path"]).is_file() for file in kept.values())
    assert bad.not_reproducible is not None
    popularity = read_entry(tmp_path, names[1])
    assert popularity.validation is not None
    assert (popularity.validation.seeds, popularity.cost.wall_s) == ({}, None)
    assert popularity.validation.interval is not None
    # A job that was killed before it left publishes again: the same bytes.
    before = (tmp_path / "leaderboard" / names[2] / "entry.yaml").read_bytes()
    publish.publish(run.context("it01_publish"))
    assert (tmp_path / "leaderboard" / names[2] / "entry.yaml").read_bytes() == before


def test_seeds_of_another_candidate_widen_the_interval_on_the_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shaky(root: Path, folder: Path, ndcg: float) -> dict[str, Any]:
        one, other = (metrics(root, folder / f"{n}", ndcg * n, (n,)) for n in (1, 2))
        seeds = one["sealed"]["seeds"] + other["sealed"]["seeds"]
        return one | {
            "seeds": one["seeds"] + other["seeds"],
            "sealed": {"reads": 1, "seeds": seeds},
        }

    steady = decided(tmp_path / "a", lost=False)
    publish.publish(steady.context("it01_publish"))
    branch = Small.branch

    def second_is_shaky(run: Small, name: str, **more: int) -> None:
        with monkeypatch.context() as patched:
            if name == "p02":
                patched.setattr("function_runs.metrics", shaky)
            branch(run, name, **more)

    monkeypatch.setattr(Small, "branch", second_is_shaky)
    publish.publish(decided(tmp_path / "b", lost=False).context("it01_publish"))
    alone, beside = (read_entry(tmp_path / name, "r1-it01-p01").on_test for name in "ab")
    assert alone is not None
    assert beside is not None
    assert alone.delta == beside.delta
    assert alone.interval == pytest.approx((alone.delta,) * 2), "nothing of its own varies"
    assert beside.interval[1] - beside.interval[0] > 0.1


def test_seed_0_of_a_training_is_a_seed(tmp_path: Path) -> None:
    run = decided(tmp_path)
    context = run.context("it01_publish")
    good, _ = candidates(context)
    zero = replace(good, metrics=metrics(tmp_path, tmp_path / "zero", 0.2, seeds=(0, 1)))
    entry = publish._entry(context, zero, TurnNoise())
    assert entry.validation is not None
    assert set(entry.validation.seeds) == {"0", "1"}


def test_a_cost_with_an_unknown_part_is_unknown(tmp_path: Path) -> None:
    run = decided(tmp_path)
    context = run.context("it01_publish")
    good, _ = candidates(context)
    node = next(iter(good.nodes))
    unknown = {**good.nodes, node: good.nodes[node]._replace(usage=Usage(None, 2.0))}
    cost = publish._entry(context, replace(good, nodes=unknown), TurnNoise()).cost
    assert (cost.actions, cost.wall_s) == (None, 6.0)
    gone = {**good.nodes, node: good.nodes[node]._replace(usage=None)}
    cost = publish._entry(context, replace(good, nodes=gone), TurnNoise()).cost
    assert (cost.actions, cost.wall_s) == (None, None)
    assert cost.train_s == 1.5, "the training was measured all the same"


def test_a_cost_in_tokens_and_dollars_is_what_products_report(tmp_path: Path) -> None:
    context = decided(tmp_path).context("it01_publish")
    good, bad = candidates(context)
    assert publish._entry(context, good, TurnNoise()).cost.tokens is None, "nobody has reported any"
    reported = Usage(3, 1.0, tokens=1200, micro_usd=2500)
    for row, worked in ((good, 5), (bad, 2)):
        nodes = {
            instance: node._replace(usage=reported) if node.attempt else node
            for instance, node in row.nodes.items()
        }
        cost = publish._entry(context, replace(row, nodes=nodes), TurnNoise()).cost
        assert (cost.tokens, cost.usd) == (worked * 1200, worked * 0.0025), "skipped nodes are free"


def test_an_iteration_that_published_nothing_has_nothing_to_record(tmp_path: Path) -> None:
    run = decided(tmp_path)
    run.play("it01_publish", outcome=Outcome.FAILED, reason="no room")
    record.record(tmp_path, "r1", "it01")
    text = (run.project.run_dir / "it01" / "recorded.json").read_text()
    assert '"files": {}' in text
    assert not (tmp_path / ".dvc").exists()


def git(root: Path, *arguments: str) -> str:
    settings = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
    argv = ["git", *settings, *arguments]
    return subprocess.run(argv, cwd=root, capture_output=True, text=True, check=True).stdout


def repository(root: Path, *, commit: bool) -> Small:
    run = small(root, commit=commit)
    git(root, "init", "-q", "-b", "main")
    for name, value in (("name", "t"), ("email", "t@localhost")):
        git(root, "config", f"user.{name}", value)
    (root / ".gitignore").write_text("runs/\ndata/raw/\n")
    (root / "mine.txt").write_text("one\n")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "begin")
    for path in (
        "leaderboard/r1-base/entry.yaml",
        "leaderboard/r1-base/.gitignore",
        "leaderboard/r1-base/.evidence.tar.5f3a.tmp",
        "leaderboard/draft/entry.yaml",
        "knowledge/notes/r1-base.md",
        "knowledge/notes/mine.md",
        "knowledge/wiki/film.md",
        "data/raw/toy/big.csv",
        "data/splits/toy/train.parquet.dvc",
        "data/splits/toy/.gitignore",
    ):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("x\n")
    (root / "mine.txt").write_text("two\n")
    git(root, "add", "mine.txt")
    return run


POINTERS = ["data/splits/toy/train.parquet.dvc"]


def test_by_default_nothing_is_committed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = repository(tmp_path, commit=False)
    before = git(tmp_path, "status", "--porcelain")
    commit_or_print(run.project, ["r1-base"], POINTERS)
    assert git(tmp_path, "status", "--porcelain") == before
    assert git(tmp_path, "log", "--format=%s") == "begin\n"
    assert "git add leaderboard knowledge data && git commit" in capsys.readouterr().out


def test_only_what_the_iteration_made_is_committed(tmp_path: Path) -> None:
    run = repository(tmp_path, commit=True)
    commit_or_print(run.project, ["r1-base"], POINTERS)
    assert git(tmp_path, "log", "-1", "--format=%s") == "leaderboard: r1-base\n"
    assert git(tmp_path, "show", "--name-only", "--format=").split() == [
        "data/splits/toy/.gitignore",
        "data/splits/toy/train.parquet.dvc",
        "knowledge/notes/r1-base.md",
        "knowledge/wiki/film.md",
        "leaderboard/r1-base/.gitignore",
        "leaderboard/r1-base/entry.yaml",
    ]
    assert "M  mine.txt" in git(tmp_path, "status", "--porcelain"), "what was staged stays staged"
    commit_or_print(run.project, ["r1-base"], POINTERS)
    assert git(tmp_path, "rev-list", "--count", "HEAD") == "2\n", "repeating it is harmless"
