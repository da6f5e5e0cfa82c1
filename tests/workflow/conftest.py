"""Real projects in temporary folders, driven by the real Snakemake."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
MINIMAL = "config/protocols/minimal.eop.md"


@dataclass(frozen=True)
class Project:
    """A user's project: a copy of the repository's files, and the commands a user types."""

    root: Path

    def snakemake(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.command(sys.executable, "-m", "snakemake", "--cores", "2", *arguments)

    def eop(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.command(sys.executable, "-m", "eop.cli", *arguments)

    def command(self, *argv: str) -> subprocess.CompletedProcess[str]:
        # A project without the harness in it has that of this very working tree.
        path = os.pathsep.join([str(self.root), str(ROOT)])
        return subprocess.run(
            argv,
            cwd=self.root,
            env={**os.environ, "PYTHONPATH": path, "COLUMNS": "100"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    def configure(self, **values: str) -> None:
        path = self.root / "config" / "config.yaml"
        lines = []
        for line in path.read_text().splitlines():
            key = line.split(":")[0]
            lines.append(f"{key}: {values[key]}" if key in values else line)
        path.write_text("\n".join(lines) + "\n")

    def request(self, gate: str) -> Path:
        """The one request page of a gate."""
        (page,) = (self.root / "gates").rglob(f"*-{gate}.*.request.md")
        return page

    def answer(self, gate: str, answer: str = "approved", reason: str = "") -> Path:
        """What a person does: make the sentinel that the request names."""
        page = self.request(gate)
        sentinel = page.with_name(page.name.removesuffix("request.md") + answer)
        assert f"touch {sentinel.relative_to(self.root)}" in page.read_text()
        sentinel.write_text(reason)
        return sentinel

    def events(self, run: str = "minimal-synthetic") -> list[Path]:
        return sorted((self.root / "runs" / run / "trace").glob("*.json"))

    def recorded(self, run: str) -> list[dict[str, Any]]:
        """What the trace says, those of its events that are packed included."""
        files = (self.root / "runs" / run / "trace").glob("*.json*")
        events = [json.loads(line) for path in files for line in path.read_text().splitlines()]
        by_number = {event["seq"]: event for event in events}
        return [by_number[number] for number in sorted(by_number)]


def copy_sources(to: Path) -> Project:
    """The files of the repository as they are now, committed or not; no run's leavings."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    own = {"leaderboard", "knowledge", "data", "tests"}
    for name in filter(None, listed.split("\0")):
        if name.split("/")[0] not in own and (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)
    subprocess.run(["git", "init", "--quiet"], cwd=to, check=True)
    return Project(to)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave Slurm out, unless the marker is named."""
    if "slurm" in (config.option.markexpr or ""):
        return
    real = [item for item in items if item.get_closest_marker("slurm")]
    if real:
        config.hook.pytest_deselected(items=real)
        items[:] = [item for item in items if item not in real]


@pytest.fixture(scope="session")
def at_first_gate(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose `minimal` run stands at its gate; tests work on copies of it."""
    project = copy_sources(tmp_path_factory.mktemp("first-gate") / "project")
    project.configure(protocol=MINIMAL)
    done = project.snakemake()
    assert done.returncode == 0, done.stdout + done.stderr
    return project


@pytest.fixture
def project(at_first_gate: Project, tmp_path: Path) -> Project:
    """A copy of the project at its first gate, modification times and all."""
    shutil.copytree(at_first_gate.root, tmp_path / "project", symlinks=True)
    return Project(tmp_path / "project")


@pytest.fixture
def fresh(tmp_path: Path) -> Project:
    """A project in which nothing has run, set to the protocol `minimal`."""
    project = copy_sources(tmp_path / "project")
    project.configure(protocol=MINIMAL)
    return project


def leavings(root: Path) -> set[str]:
    """What the repository holds where a run of its own would write."""
    tops = ("leaderboard", "knowledge", "gates", "runs")
    return {str(path) for top in tops for path in (root / top).rglob("*")}


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, str]:
    """The finished demo and what it printed; whoever changes it works on a copy."""
    folder = tmp_path_factory.mktemp("demo") / "demo"
    before = leavings(ROOT)
    done = subprocess.run(
        [sys.executable, "-m", "eop.cli", "demo", str(folder)],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "100"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert leavings(ROOT) == before, "the demo must leave the repository's own run alone"
    return Project(folder), done.stdout
