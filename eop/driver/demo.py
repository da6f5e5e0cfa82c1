"""`make demo`: a project of its own, two iterations, real trainings, gates answered for you."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from eop.core.errors import EopError, ExitCode, Where
from eop.core.files import write_text
from eop.driver.loop import position_of, snakemake_command
from eop.driver.workflow import load_project
from eop.knowledge.entities import FILE as ENTITIES
from eop.project.config import CONFIG_FILE, read_raw

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from eop.project.project import Project
    from eop.runtime.advance import Position

_PROTOCOL = "config/protocols/demo.eop.md"
# What a run leaves; a demo starts without any of it.
_OWN = ("leaderboard", "knowledge", "gates", "runs", "repro", "data")
_REMOTE = ".dvc-remote"
_MARK = ".rankevolve-demo"


def play(root: Path, folder: Path, *, cores: int) -> Project:
    """Make a project in ``folder`` from the sources at ``root`` and run the demo protocol there.

    An earlier demo in ``folder`` is replaced; anything else there is refused (EOP830). Every
    sentinel is touched on behalf of the person who asked for the demo, and said so.
    """
    make_project(root, folder)
    project = load_project(folder, read_raw(folder))
    _say(f"project {folder} (git and DVC of its own), protocol {_PROTOCOL}")
    while True:
        position = _snakemake(folder, cores)
        if position.ended:
            break
        if not position.waiting:
            raise EopError("EOP831", f"the demo stands still: {position.frontier.reason}")
        for gate in position.waiting:
            print(_indented(gate.request.read_text()))
            _say(
                f"you asked for the demo, so it answers for you: "
                f"touch {project.relative(gate.approve)}"
            )
            gate.approve.touch(exist_ok=False)
    _say(f"run ended: {position.ended}")
    return project


def make_project(root: Path, folder: Path) -> None:
    """A project in ``folder`` with the sources at ``root``, a git commit and a DVC remote.

    Replaces an earlier demo; raises ``EopError`` (EOP830) when ``folder`` is anything else.
    """
    if folder.exists():
        if not (folder / _MARK).is_file():
            raise EopError(
                "EOP830",
                "this folder is no demo; the demo would replace it",
                where=Where(str(folder)),
                hint="name another folder: eop demo <folder>",
                exit_code=ExitCode.USAGE,
            )
        shutil.rmtree(folder)
    listed = _git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    folder.mkdir(parents=True)
    (folder / _MARK).touch()
    for name in filter(None, listed.split("\0")):
        source = root / name
        left = name.split("/")[0] in _OWN and name != ENTITIES
        if left or not source.is_file():
            continue
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, folder / name)
    config = (folder / CONFIG_FILE).read_text()
    write_text(folder / CONFIG_FILE, _with_protocol(config))
    _version(folder)


def _with_protocol(config: str) -> str:
    lines = config.splitlines(keepends=True)
    return "".join(
        f"protocol: {_PROTOCOL}\n" if line.startswith("protocol:") else line for line in lines
    )


def _version(folder: Path) -> None:
    """A git repository with one commit, and a DVC remote beside it."""
    _git(folder, "init", "--quiet", "--initial-branch", "main")
    _git(folder, "config", "user.name", "demo")
    _git(folder, "config", "user.email", "demo@localhost")
    with (folder / ".git" / "info" / "exclude").open("a") as exclude:
        exclude.write(f"/{_MARK}\n/{_REMOTE}/\n")
    _run(folder, [sys.executable, "-m", "dvc", "remote", "add", "--quiet", "-d", "demo", _REMOTE])
    _git(folder, "add", "--all")
    _git(folder, "commit", "--quiet", "--message", "demo: the project as it begins")


def _snakemake(folder: Path, cores: int) -> Position:
    done = subprocess.run(
        snakemake_command({}, cores=cores, extra=["--quiet", "host", "reason", "progress"]),
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        check=False,
    )
    if done.returncode:
        raise EopError(
            "EOP832",
            f"snakemake ended with status {done.returncode}; its message stands above",
            where=Where(str(folder)),
        )
    return position_of(load_project(folder, read_raw(folder)))


def _git(folder: Path, *arguments: str) -> str:
    return _run(folder, ["git", *arguments])


def _run(folder: Path, argv: Sequence[str]) -> str:
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise EopError(
            "EOP833",
            f"`{' '.join(argv)}` failed: {done.stderr.strip()}",
            where=Where(str(folder)),
            exit_code=ExitCode.ENVIRONMENT,
        )
    return done.stdout


def _indented(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.splitlines())


def _say(line: str) -> None:
    print(f"demo: {line}", flush=True)
