"""Killed at every boundary, a run ends the same; what was killed costs what it reserved."""

from __future__ import annotations

import os
import resource
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from small_project import RUN, die_at, drive, in_a_process, of_run, small_project

from eop.core.errors import ExitCode
from eop.protocol.model import Amount
from eop.runtime.trace import Trace
from eop.runtime.verify import verify

if TYPE_CHECKING:
    from eop.runtime.events import Event
    from eop.runtime.state import State

# So many boundaries at least: of a kind that nothing belongs to, nothing would be tested.
KINDS = {"event": 15, "artifact": 3, "work": 12, "outcome": 5, "rules": 2, "other": 6}


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nobody has killed."""
    root = small_project(tmp_path_factory.mktemp("quiet"))
    assert in_a_process(lambda: drive(root)) == 0
    return root


def trace_of(root: Path) -> Trace:
    project = of_run(root)
    return Trace(project.trace_dir, project.plan)


def came_to(state: State) -> dict[str, Any]:
    """Outcomes and what they rest on, without costs: those of killed attempts are each run's."""
    nodes = {key: (node.status, node.reason, node.artifacts) for key, node in state.nodes.items()}
    return {"nodes": nodes, "ended": state.ended, "branches": state.branches}


def cost(events: tuple[Event, ...]) -> tuple[Amount, Amount]:
    """What was used by attempts that left, and what was reserved by those that were abandoned."""
    reserved = {}
    used = lost = Amount()
    for event in events:
        data = event.data
        if event.type == "node_entered":
            reserved[data["node"], data["attempt"]] = Amount(**data["reserve"])
        elif event.type == "node_abandoned":
            lost += reserved[data["node"], data["attempt"]]
        elif event.type == "node_left":
            used += Amount(**data["usage"])
    return used, lost


def cut_short(root: Path) -> int:
    """Actions that the streams of attempts show which were killed before they were judged."""
    folders = [path.parent for path in (root / "runs" / RUN).rglob("work/*/a*/stdout")]
    return sum(
        (folder / "stdout").read_text().count('"tool_call"')
        for folder in folders
        if not (folder / "result.json").is_file()
    )


@pytest.mark.parametrize("when", ["before", "after", "full"])
@pytest.mark.parametrize("kind", KINDS)
def test_stopped_at_every_boundary_it_ends_the_same(
    quiet: Path, tmp_path: Path, kind: str, when: str
) -> None:
    root, log = small_project(tmp_path / "project"), tmp_path / "stopped"

    def until_stopped() -> None:
        die_at(kind, when, log)
        drive(root)

    stops = 0
    ends = ExitCode.ENVIRONMENT if when == "full" else -signal.SIGKILL
    while (status := in_a_process(until_stopped)) == ends:
        stops += 1
    assert status == 0
    assert stops == len(log.read_text().splitlines()) >= KINDS[kind]

    expected, found = trace_of(quiet).state(), trace_of(root).state()
    assert came_to(found) == came_to(expected)
    used, lost = cost(trace_of(root).events())
    assert found.spent.actions == used.actions + lost.actions
    assert found.spent.wall_s == pytest.approx(used.wall_s + lost.wall_s)
    abandoned = [e for e in trace_of(root).events() if e.type == "node_abandoned"]
    assert lost == Amount(10 * len(abandoned), 120.0 * len(abandoned))
    assert used.actions == expected.spent.actions + cut_short(root)
    assert found.reserved == Amount()
    assert verify(root, RUN) == []


def test_a_folder_that_may_not_be_written(capfd: pytest.CaptureFixture[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = small_project(Path(folder) / "project")
        Path(folder).chmod(0o755)
        root.chmod(0o555)

        def as_a_user() -> None:
            if os.geteuid() == 0:  # who may write everywhere
                os.setuid(65534)
            drive(root)

        assert in_a_process(as_a_user) == ExitCode.ENVIRONMENT
        said = capfd.readouterr().err
        assert "error[EOP703] cannot be written: Permission denied" in said
        assert str(root / "runs/.lock") in said
        root.chmod(0o755)
        assert not (root / "runs").exists()


def test_a_quota_that_is_used_up_stops_a_run_which_goes_on_later(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    root = small_project(tmp_path)

    def short_of_room() -> None:
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, limits[1]))
        try:
            drive(root)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    assert in_a_process(short_of_room) == ExitCode.ENVIRONMENT
    assert "error[EOP703] cannot be written: File too large" in capfd.readouterr().err
    assert not list((root / "runs").rglob("*.tmp"))
    assert in_a_process(lambda: drive(root)) == 0
    assert verify(root, RUN) == []
