"""`make demo`: a project of its own, two iterations, real trainings, gates answered for you."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from eop.core.errors import EopError, ExitCode, Where
from eop.core.files import read_json, write_text
from eop.driver.create import create, git, run
from eop.driver.loop import how_it_ended, position_of, snakemake_command
from eop.driver.workflow import load_project
from eop.project.config import read_raw

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from eop.project.project import Project
    from eop.runtime.advance import Position
    from eop.runtime.answers import GateView
    from eop.runtime.node import Artifact

_PROTOCOL = "demo"
_REMOTE = ".dvc-remote"
_MARK = ".rankevolve-demo"
_SCREENING = "/screening.json"


def play(folder: Path, *, cores: int) -> Project:
    """Make a project in ``folder`` and run the demo protocol there.

    An earlier demo in ``folder`` is replaced; anything else there is refused (EOP830). Every
    sentinel is touched on behalf of the person who asked for the demo, and said so.
    """
    make_project(folder)
    project = load_project(folder, read_raw(folder))
    _say(f"project {folder} (git and DVC of its own), protocol {_PROTOCOL}")
    moved = -1
    while True:
        position = _snakemake(folder, cores)
        if position.ended:
            break
        # A call ends where a turn of the loop does; the next one goes on.
        before, moved = moved, position.state.seq
        if not position.waiting and moved == before:
            raise EopError("EOP831", f"the demo stands still: {position.frontier.reason}")
        for gate in position.waiting:
            print(_indented(gate.request.read_text()))
            _answer(project, gate, position.state.gates[gate.instance.key].shown)
    _say(f"run ended: {position.ended}")
    return project


def _answer(project: Project, gate: GateView, shown: Sequence[Artifact]) -> None:
    """Approve a gate; reject one that shows proposals which repeat a recorded negative."""
    screened = [project.root / one.path for one in shown if one.path.endswith(_SCREENING)]
    repeats = [repeat for path in screened for repeat in read_json(path)["repeats"]]
    if not repeats:
        sentinel = project.relative(gate.approve)
        _say(f"you asked for the demo, so it answers for you: touch {sentinel}")
        gate.approve.touch(exist_ok=False)
        return
    reason = "; ".join(f"{one['proposal']} repeats {one['note']}" for one in repeats)
    _say(f"flagged before it cost anything: {reason}")
    sentinel = project.relative(gate.reject)
    _say(f"you asked for the demo, so it answers for you: echo '{reason}' > {sentinel}")
    write_text(gate.reject, f"{reason}\n")


def make_project(folder: Path) -> None:
    """A project in ``folder`` that runs the demo protocol, with a git commit and a DVC remote.

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
        # The folder itself stays: the one who asks may stand in it.
        for old in folder.iterdir():
            shutil.rmtree(old) if old.is_dir() and not old.is_symlink() else old.unlink()
    create(folder, protocol=_PROTOCOL)
    (folder / _MARK).touch()
    git(folder, "config", "user.name", "demo")
    git(folder, "config", "user.email", "demo@localhost")
    with (folder / ".git" / "info" / "exclude").open("a") as exclude:
        exclude.write(f"/{_MARK}\n/{_REMOTE}/\n")
    run(folder, [sys.executable, "-m", "dvc", "remote", "add", "--quiet", "-d", "demo", _REMOTE])
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "demo: the project as it begins")


def _snakemake(folder: Path, cores: int) -> Position:
    done = subprocess.run(
        snakemake_command({}, cores=cores, extra=["--quiet", "host", "reason", "progress"]),
        cwd=folder,
        check=False,
    )
    if done.returncode:
        raise EopError("EOP832", how_it_ended(done.returncode), where=Where(str(folder)))
    return position_of(load_project(folder, read_raw(folder)))


def _indented(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.splitlines())


def _say(line: str) -> None:
    print(f"demo: {line}", flush=True)
