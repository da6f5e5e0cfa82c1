"""A protocol that is changed in mid-run is refused, with what differs and the ways out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from begun import MINIMAL, begun_project
from click.testing import CliRunner

from eop.cli import cli
from eop.core.errors import EopError, ExitCode
from eop.core.locks import exclusive
from eop.driver.loop import position_of
from eop.driver.start import open_run
from eop.driver.workflow import load_project, lock_project
from eop.project.config import read_raw
from eop.project.project import Project
from eop.runtime.lifecycle import enter
from eop.runtime.node import Instance
from eop.runtime.trace import Trace
from eop.runtime.verify import verify

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

RUN = "minimal-synthetic"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return begun_project(tmp_path)


def edit(root: Path, before: str, after: str) -> None:
    path = root / MINIMAL
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))


def migrate(root: Path) -> Result:
    return CliRunner().invoke(cli, ["--project", str(root), "migrate", "--reason", "why not"])


def reopen(root: Path) -> None:
    open_run(load_project(root, read_raw(root)))


def test_a_changed_protocol_is_refused_and_migrated(root: Path) -> None:
    edit(root, "actions: 40", "actions: 80")
    edit(root, "Name the one change", "Name two changes")
    with pytest.raises(EopError, match="EOP710") as caught:
        reopen(root)
    said = str(caught.value)
    assert "'actions': 40" in said
    assert "step 'advise' was changed: body" in said
    assert "eop migrate" in said
    assert f"--config run={RUN}-2" in said

    done = migrate(root)
    assert done.exit_code == 0, done.exception
    assert "step 'advise' was changed: body" in done.output
    reopen(root)
    assert verify(root, RUN) == []
    event = Trace(Project.of_run(root, RUN).trace_dir, Project.of_run(root, RUN).plan).events()[-1]
    assert (event.type, event.data["reason"]) == ("plan_changed", "why not")
    assert "already" in migrate(root).output


def test_a_changed_prompt_is_a_changed_protocol(root: Path) -> None:
    prompt = root / "config/prompts/agent.md"
    prompt.write_text(prompt.read_text() + "\nBe brief.\n")
    with pytest.raises(EopError, match="EOP710") as caught:
        reopen(root)
    assert "step 'advise' was changed: prompts" in str(caught.value)
    assert "step 'advise' was changed: prompts" in migrate(root).output
    reopen(root)


def test_what_has_been_at_work_must_stay(root: Path) -> None:
    project = Project.of_run(root, RUN)
    trace = Trace(project.trace_dir, project.plan)
    look = Instance.parse("it01_look")
    position_of(project)
    enter(trace, project.plan, look)
    edit(root, "Say in ten lines", "Say in two lines")
    with exclusive(project.run_dir / look.directory / ".lock"):
        refused = migrate(root)
        assert "it01_look is at work" in str(refused.exception)
    refused = migrate(root)
    assert isinstance(refused.exception, EopError)
    assert refused.exception.code == "EOP717"
    assert refused.exception.exit_code is ExitCode.STATE
    assert "step 'look' has been at work or decided: body changed" in str(refused.exception)
    assert trace.state().nodes[look.key].status == "abandoned", "its process died"
    assert not list(project.run_dir.glob("plan.*.json"))


def test_not_while_somebody_drives_the_run(root: Path) -> None:
    edit(root, "Name the one change", "Name two changes")
    with lock_project(root):
        assert "EOP810" in str(migrate(root).exception)


def test_a_change_that_was_cut_short_is_completed(root: Path) -> None:
    project = Project.of_run(root, RUN)
    edit(root, "Name the one change", "Name two changes")
    assert migrate(root).exit_code == 0
    events = len(list(project.trace_dir.glob("*.json")))
    (project.run_dir / "plan.json").write_text(json.dumps(project.plan.to_json()))
    with pytest.raises(EopError, match="EOP710"):
        reopen(root)
    status = CliRunner().invoke(cli, ["--project", str(root), "status"])
    assert "EOP716" in str(status.exception)
    assert migrate(root).exit_code == 0
    reopen(root)
    assert len(list(project.trace_dir.glob("*.json"))) == events
