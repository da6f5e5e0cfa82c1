"""`record`, killed at every step and repeated: the same bytes in DVC and git as in peace."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from decided_run import decided

from eop.core.errors import EopError
from eop.evidence import Dvc
from eop.evidence.store import md5_of, object_path
from eop.functions import publish
from eop.functions.record import record

RECORDED = Path("runs/r1/it01/recorded.json")
STEPS = {
    "naming .dvc",
    *(
        f"{at} dvc {what}"
        for what in ("config", "add", "push")
        for at in ("before", "in the midst of")
    ),
    "reading cache",
    "reading remote",
    "naming .dvc/plots",
    "naming leaderboard/board",
    "naming leaderboard/board/dvc.yaml",
    "before git add",
    "before git diff",
    "before git commit",
    "naming runs/r1/it01/recorded.json",
}


def git(root: Path, *arguments: str) -> str:
    settings = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
    argv = ["git", *settings, *arguments]
    return subprocess.run(argv, cwd=root, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a remote, whose first iteration is published and not recorded."""
    root = tmp_path_factory.mktemp("published") / "project"
    root.mkdir()
    run = decided(root, commit=True)
    rows = publish.publish(run.context("it01_publish"))
    run.play("it01_publish", {"rows": json.loads(rows.read_text())})
    git(root, "init", "-q", "-b", "main")
    for name in ("name", "email"):
        git(root, "config", f"user.{name}", "t@localhost")
    (root / ".gitignore").write_text("runs/\nstorage/\nevidence/\n.*.tmp\n")
    git(root, "add", "config", ".gitignore")
    git(root, "commit", "-q", "-m", "begin")
    return root


def copy(published: Path, to: Path) -> Path:
    shutil.copytree(published, to, symlinks=True)
    (to / "storage").mkdir()
    # The settings that `Dvc.init` writes, and where a remote is.
    text = "['remote \"storage\"']\n    url = ../storage\n[core]\n    remote = storage\n"
    (to / ".dvc").mkdir()
    (to / ".dvc" / "config.local").write_text(text)
    return to


def whole(root: Path) -> dict[str, bytes]:
    """Every file that has its final name; each can be read for what it is."""
    tops = ("leaderboard", "data", "knowledge", ".dvc/config", ".dvc/plots", str(RECORDED))
    paths = [p for top in tops for p in [root / top, *(root / top).rglob("*")] if p.is_file()]
    found = {p.relative_to(root).as_posix(): p for p in paths if not p.name.endswith(".tmp")}
    for name, path in found.items():
        if path.suffix in (".dvc", ".yaml"):
            assert yaml.safe_load(path.read_text()), name
        elif path.suffix == ".json":
            json.loads(path.read_text())
    return {name: path.read_bytes() for name, path in found.items()}


def committed(root: Path) -> int:
    return int(git(root, "rev-list", "--count", "HEAD"))


def test_killed_at_every_step_it_ends_as_if_nothing_had_happened(
    published: Path, tmp_path: Path
) -> None:
    quiet, shaken = (copy(published, tmp_path / name) for name in ("quiet", "shaken"))
    record(quiet, "r1", "it01")
    expected, log = whole(quiet), tmp_path / "log"
    assert committed(quiet) == 2
    log.touch()
    argv = [
        sys.executable,
        str(Path(__file__).with_name("dying_recorder.py")),
        str(shaken),
        str(log),
    ]
    for _ in range(2 * len(STEPS)):
        died = subprocess.run(argv, capture_output=True, text=True, check=False)
        if died.returncode == 0:
            break
        assert died.returncode == -signal.SIGKILL, died.stdout + died.stderr
        half = whole(shaken)
        assert {name: expected[name] for name in half} == half
        done = committed(shaken) == 2
        assert not done or git(shaken, "ls-tree", "-r", "HEAD") == git(
            quiet, "ls-tree", "-r", "HEAD"
        )
        for name in half if done else ():
            if name.endswith(".dvc"):
                md5 = Dvc(shaken).pointed(name).md5
                assert md5_of(object_path(shaken / "storage", md5)) == md5, "bytes come before git"
    assert died.returncode == 0
    assert set(log.read_text().splitlines()) >= STEPS
    assert whole(shaken) == expected
    assert committed(shaken) == 2
    for root in (quiet, shaken):
        assert git(root, "status", "--porcelain") == git(quiet, "status", "--porcelain")
        assert not [name for name in git(root, "ls-files").split() if name.endswith(".tmp")]


def test_recorders_at_once_take_turns(published: Path, tmp_path: Path) -> None:
    root = copy(published, tmp_path / "project")
    # A commit holds git's index while its hooks run, and a second one is refused meanwhile.
    hook = root / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\nsleep 6\n")
    hook.chmod(0o755)
    code = (
        "import pathlib, sys; from eop.functions.record import record;"
        "record(pathlib.Path(sys.argv[1]), 'r1', 'it01')"
    )
    argv = [sys.executable, "-c", code, str(root)]
    for each in [subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) for _ in range(2)]:
        assert each.communicate()[1] == "" and each.returncode == 0
    assert committed(root) == 2
    assert Dvc(root).verify(Dvc(root).pointers(), remote=True).sound


def test_what_has_changed_since_it_was_published_is_not_stored(
    published: Path, tmp_path: Path
) -> None:
    root = copy(published, tmp_path / "project")
    model = root / "leaderboard/r1-it01-p01/model-seed1.safetensors"
    content = model.read_bytes()
    model.write_bytes(content.swapcase())
    with pytest.raises(EopError, match="model-seed1") as caught:
        record(root, "r1", "it01")
    assert caught.value.code == "EOP644"
    assert not [path for path in root.rglob("*.dvc") if path.is_file()], "no pointer says otherwise"
    assert (committed(root), (root / RECORDED).exists()) == (1, False)
    model.write_bytes(content)
    record(root, "r1", "it01")
    assert committed(root) == 2


def test_root_that_overwrites_a_checkpoint_leaves_what_is_stored_intact(
    published: Path, tmp_path: Path
) -> None:
    root = copy(published, tmp_path / "project")
    record(root, "r1", "it01")
    name = "leaderboard/r1-it01-p01/model-seed1.safetensors"
    content = (root / name).read_bytes()
    with (root / name).open("r+b") as stream:
        stream.write(b"overwritten")
    (root / name).chmod(0o666)
    assert Dvc(root).verify().sound
    (root / name).unlink()
    argv = [sys.executable, "-m", "dvc", "checkout", "-q", f"{name}.dvc"]
    assert subprocess.run(argv, cwd=root, env=os.environ, check=False).returncode == 0
    assert (root / name).read_bytes() == content
