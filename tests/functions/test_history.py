"""A snapshot that is lost, packed again from git's history: the real git, real commits."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from eop.core.canonical import file_digest
from eop.functions.history import from_history
from eop.functions.trees import pin_snapshot

if TYPE_CHECKING:
    from pathlib import Path

TARGET = "name: model\nsnapshot: [model, params.yaml]\neditable: [model/**]\n"


def git(root: Path, *arguments: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", *who, *arguments], cwd=root, check=True, capture_output=True)


def commit(root: Path, text: str) -> None:
    (root / "model" / "net.py").write_text(text)
    git(root, "add", ".")
    git(root, "commit", "-m", text)


@pytest.fixture(params=["", "below/it"])
def root(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A project with a history, at the top of its repository or further down."""
    root = tmp_path / request.param
    (root / "config" / "targets").mkdir(parents=True)
    (root / "config" / "targets" / "model.yaml").write_text(TARGET)
    # In the order of paths, `a-b` stands behind `a/c`; by their letters it would not.
    for folder in ("a", "a-b"):
        (root / "model" / folder).mkdir(parents=True)
        (root / "model" / folder / "c.py").write_text(folder)
    (root / "params.yaml").write_text("dim: 4\n")
    (root / ".gitignore").write_text("/data\n")
    git(tmp_path, "init", "-q")
    commit(root, "one")
    return root


def pinned(root: Path) -> tuple[bytes, str]:
    path = pin_snapshot(root, "model")
    return path.read_bytes(), file_digest(path)


def test_one_that_a_commit_holds_comes_back_bit_for_bit(root: Path) -> None:
    content, sha256 = pinned(root)
    commit(root, "two")
    assert pinned(root)[1] != sha256
    assert from_history(root, sha256) == content


def test_one_of_another_branch_comes_back(root: Path) -> None:
    git(root, "checkout", "-q", "-b", "other")
    commit(root, "three")
    content, sha256 = pinned(root)
    git(root, "checkout", "-q", "-")
    commit(root, "two")
    assert from_history(root, sha256) == content


def test_one_that_no_commit_holds_does_not(root: Path) -> None:
    (root / "model" / "net.py").write_text("never committed")
    assert from_history(root, pinned(root)[1]) is None


def test_without_git_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "config" / "targets").mkdir(parents=True)
    (tmp_path / "config" / "targets" / "model.yaml").write_text(TARGET)
    assert from_history(tmp_path, "0" * 64) is None
