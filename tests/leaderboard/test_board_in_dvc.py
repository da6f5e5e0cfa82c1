"""The leaderboard as a DVC user sees it: tables and pictures, between revisions, after a merge."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from entry_samples import CONFIG, FILES, candidate, failed, project, scores

from eop.evidence import Dvc
from eop.leaderboard import Entry, write_entry
from eop.leaderboard.board import BOARD, write_board

if TYPE_CHECKING:
    from pathlib import Path

SEEDS = (
    b"seed\tepoch\tloss\tseconds\n1\t1\t3.5\t0.4\n1\t2\t3.0\t0.4\n2\t1\t3.6\t0.4\n2\t2\t3.1\t0.4\n"
)
WHERE = f"{BOARD}/toy-abababab"
LEADER = f"{WHERE}.leader.json"


def run(root: Path, *argv: str, rc: int = 0) -> str:
    done = subprocess.run(
        argv,
        cwd=root,
        env={**os.environ, "DVC_NO_ANALYTICS": "1", "DVC_SITE_CACHE_DIR": str(root / "runs/site")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == rc, done.stdout + done.stderr
    return done.stdout


def dvc(root: Path, *arguments: str) -> Any:
    return json.loads(run(root, sys.executable, "-m", "dvc", *arguments, "--json"))


def git(root: Path, *arguments: str, rc: int = 0) -> str:
    settings = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
    return run(root, "git", *settings, *arguments, rc=rc)


def add(root: Path, *entries: Entry, config: bytes = CONFIG) -> None:
    """Publish entries and record them, as far as git is concerned."""
    for entry in entries:
        given = {**FILES, "curve.tsv": SEEDS, "config.yaml": config} if entry.test else {}
        if entry.kind == "base":
            del given["patch.diff"]
        write_entry(root, entry, given)
    write_board(root)
    git(root, "add", "leaderboard", ".dvc")
    git(root, "commit", "-q", "-m", entries[0].id)


def base() -> Entry:
    kind = {"kind": "base", "parent": None, "decision": None, "iteration": None}
    entry = candidate("d-base", 0.10, **kind)
    return replace(entry, evidence={**entry.evidence, "patch": None})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with two entries in its first commit, of which one came to nothing."""
    root = project(tmp_path)
    git(root, "init", "-q", "-b", "main")
    (root / ".gitignore").write_text("runs/\n")
    Dvc(root).init()
    add(root, base(), failed("d-it01-p01"))
    return root


def test_tables_show_the_rows_and_what_has_changed_since(root: Path) -> None:
    table = dvc(root, "metrics", "show")[""]["data"]
    assert list(table) == [LEADER, f"{WHERE}/d-base.json", f"{WHERE}/d-it01-p01.json"]
    assert table[f"{WHERE}/d-it01-p01.json"]["data"] == {"standing": "failed"}
    other = b"model: {dim: 16}\n"
    won = replace(candidate("d-it02-p01", 0.12), test=scores(0.15))
    won = replace(won, evidence={**won.evidence, "config": {"model": {"dim": 16}}})
    add(root, won, config=other)
    progress = dvc(root, "metrics", "diff", "HEAD~1")
    assert progress[LEADER]["entry"] == {"old": "d-base", "new": "d-it02-p01"}
    change = progress[LEADER]["test.ndcg@10"]
    assert (change["old"], change["new"]) == (pytest.approx(0.09), pytest.approx(0.15))
    params = dvc(root, "params", "diff", "HEAD~1")
    assert params[f"{WHERE}.leader.yaml"] == {"model.dim": {"old": 8, "new": 16, "diff": 8}}
    assert params["leaderboard/d-it02-p01/config.yaml"] == {"model.dim": {"old": None, "new": 16}}
    # An entry that is not among those shown, or one of a table of its own.
    one = dvc(root, "metrics", "show", "leaderboard/d-base/metrics.json")[""]["data"]
    assert one["leaderboard/d-base/metrics.json"]["data"]["test"]["seeds"].keys() == {"1", "2"}


def test_pictures_hold_several_entries_seeds_and_revisions(root: Path) -> None:
    add(root, candidate("d-it02-p01", 0.12))
    drawn = dvc(root, "plots", "show")["data"]
    assert list(drawn) == ["scores-toy-abababab", "curves-toy-abababab"]
    (curves,) = drawn["curves-toy-abababab"]
    points = curves["content"]["data"]["values"]
    assert {(p["filename"].split("/")[-2], p["seed"]) for p in points} == {
        (entry, seed) for entry in ("d-base", "d-it02-p01") for seed in ("1", "2")
    }
    assert curves["content"]["encoding"]["detail"] == {"field": "seed"}
    (picture,) = drawn["scores-toy-abababab"]
    values = {p["entry"]: p for p in picture["content"]["data"]["values"]}
    assert values.keys() == {"d-base", "d-it02-p01"}
    assert (values["d-base"]["low"], values["d-base"]["high"]) == pytest.approx((0.08, 0.10))
    both = dvc(root, "plots", "diff", "HEAD~1")["data"]["scores-toy-abababab"]
    assert {(p["entry"], p["rev"]) for one in both for p in one["content"]["data"]["values"]} == {
        ("d-base", "HEAD~1"),
        ("d-base", "workspace"),
        ("d-it02-p01", "workspace"),
    }


def test_two_branches_with_entries_conflict_in_the_open_and_are_made_one(root: Path) -> None:
    git(root, "checkout", "-q", "-b", "other")
    add(root, candidate("d-it02-p01", 0.13))
    git(root, "checkout", "-q", "main")
    add(root, candidate("d-it03-p01", 0.12))
    git(root, "merge", "-q", "other", rc=1)
    left = set(git(root, "diff", "--name-only", "--diff-filter=U").split())
    assert {f"{BOARD}/dvc.yaml", LEADER} <= left
    assert all(path.startswith(BOARD) for path in left), "no entry is in another's way"
    assert "<<<<" not in (root / BOARD / "dvc.yaml").read_text()
    assert dvc(root, "metrics", "show", LEADER)[""]["data"][LEADER]["data"]["entry"] == "d-it03-p01"
    run(root, sys.executable, "-m", "eop.cli", "store", "index")
    git(root, "add", "leaderboard")
    git(root, "commit", "-q", "-m", "merged")
    table = dvc(root, "metrics", "show")[""]["data"]
    assert table[LEADER]["data"]["entry"] == "d-it02-p01"
    assert len(table) == 5
    assert write_board(root) == []
