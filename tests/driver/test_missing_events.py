"""A trace whose end is missing, or was written anew, is told by every command that looks at it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from begun import MINIMAL, begun_project
from click.testing import CliRunner

from eop.cli import cli
from eop.core.errors import EopError, ExitCode
from eop.core.files import read_json
from eop.driver.loop import position_of
from eop.project.project import Project
from eop.runtime.trace import Trace
from eop.runtime.verify import verify

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

RUN = "minimal-synthetic"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A run that was paused and resumed: three events, the last of them noted."""
    begun_project(tmp_path)
    project = Project.of_run(tmp_path, RUN)
    for command in ("pause", "resume"):
        assert call(project, command).exit_code == 0
    assert read_json(project.run_dir / "head.json")["seq"] == 3
    return project


def call(project: Project, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["--project", str(project.root), *arguments])


def lose(project: Project, *numbers: int) -> None:
    for number in numbers:
        (project.trace_dir / f"{number:08d}.json").unlink()


@pytest.mark.parametrize("command", ["status", "pause", "cancel"])
def test_a_missing_end_is_told_and_nothing_is_added(project: Project, command: str) -> None:
    lose(project, 3)
    said = call(project, command).exception
    assert isinstance(said, EopError)
    assert (said.code, said.exit_code) == ("EOP714", ExitCode.STATE)
    assert "the trace ends at event 2, and head.json knows event 3" in str(said)
    assert said.message.partition(": ")[2] in verify(project.root, RUN)
    assert sorted(path.name for path in project.trace_dir.glob("*.json")) == [
        "00000001.json",
        "00000002.json",
    ]


def test_verify_prints_a_head_and_asks_for_one_that_was_noted(project: Project) -> None:
    said = call(project, "verify")
    assert said.exit_code == 0
    events = Trace(project.trace_dir, project.plan).events()
    assert said.output.splitlines()[-1] == f"head {events[-1].digest} (event 3)"
    head = json.loads(call(project, "verify", "--json").output)["head"]
    assert head == {"seq": 3, "digest": events[-1].digest}
    for noted in (events[-1].digest, events[0].digest[:12]):
        assert call(project, "verify", "--head", noted).exit_code == 0
    lost = call(project, "verify", "--head", "0" * 64)
    assert lost.exit_code == ExitCode.STATE
    assert "no event has the digest" in lost.output
    assert "rows not checked" in lost.output
    assert call(project, "verify", "--head", "1234").exit_code == ExitCode.USAGE


def test_verify_names_what_is_not_as_the_run_began_with_it(project: Project) -> None:
    project.base_experiment.write_text("name: edited\n")
    found = json.loads(call(project, "verify", "--json").output)
    name = project.relative(project.base_experiment)
    assert found["findings"] == [f"{name} is not what the run began with, or is missing"]
    assert found["rows_checked"]
    unreadable = json.loads(call(project, "verify", "--json", "--head", "0" * 64).output)
    assert not unreadable["rows_checked"]


def test_an_end_that_was_written_anew_is_not_taken_for_the_old_one(project: Project) -> None:
    lose(project, 2, 3)
    trace = Trace(project.trace_dir, project.plan)
    for kind in ("run_paused", "run_resumed", "run_paused"):
        trace.append(kind, {"by": "eve@lab", "reason": ""})
    for _ in range(2):
        assert "written anew" in str(call(project, "status", "--json").exception)
    assert read_json(project.run_dir / "head.json")["seq"] == 3, "what it knows is not overwritten"


def test_no_migration_of_a_run_whose_end_is_missing(project: Project) -> None:
    lose(project, 3)
    path = project.root / MINIMAL
    path.write_text(path.read_text().replace("Name the one change", "Name two changes"))
    assert "EOP714" in str(call(project, "migrate").exception)


def test_a_run_that_goes_on_while_it_is_looked_at_misses_nothing(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An event is appended and noted just before the note is read: the events are read then."""
    note, event = project.run_dir / "head.json", project.trace_dir / "00000003.json"
    later = read_json(note), event.read_bytes()
    event.unlink()

    def read(path: Path) -> dict[str, object]:
        assert path == note
        event.write_bytes(later[1])
        return later[0]

    monkeypatch.setattr("eop.runtime.witnesses.read_json", read)
    assert position_of(project).state.seq == 3
