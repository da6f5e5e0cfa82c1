"""Files of a run that are deleted: written again from the trace, or refused until they are back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from small_project import RUN, drive, in_a_process, of_run, small_project

from eop.core.errors import EopError, ExitCode
from eop.core.locks import exclusive
from eop.driver.node import run_node
from eop.driver.workflow import advance_and_compile, load_project
from eop.project.config import read_raw
from eop.runtime.verify import verify

if TYPE_CHECKING:
    from pathlib import Path


def test_deleted_outcomes_come_from_the_trace_and_artifacts_must_come_back(
    tmp_path: Path,
) -> None:
    root = small_project(tmp_path)
    project = load_project(root, read_raw(root))
    advance_and_compile(project)
    run_node(root, RUN, "it01_propose")
    folder = project.run_dir / "it01" / "propose"
    events = len(list(project.trace_dir.glob("*.json")))

    text = (folder / "outcome.json").read_text()
    (folder / "outcome.json").unlink()
    run_node(root, RUN, "it01_propose")
    assert (folder / "outcome.json").read_text() == text
    assert len(list(project.trace_dir.glob("*.json"))) == events, "no work was repeated"

    (gate,) = advance_and_compile(project).waiting
    gate.approve.touch()
    artifact = folder / "artifacts" / "proposals.json"
    content = artifact.read_bytes()
    artifact.unlink()
    with pytest.raises(EopError, match=r"EOP734.*'proposals' is missing") as caught:
        advance_and_compile(project)
    assert caught.value.exit_code is ExitCode.STATE
    assert any("'proposals' is missing" in line for line in verify(root, RUN))

    artifact.write_bytes(content)
    assert in_a_process(lambda: drive(root)) == 0
    assert verify(root, RUN) == []


def test_a_second_driver_is_refused_and_the_first_goes_on(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    root = small_project(tmp_path)
    with exclusive(root / "runs" / ".lock"):
        assert in_a_process(lambda: drive(root)) == ExitCode.LOCKED
        assert "error[EOP810] another run is active" in capfd.readouterr().err
        assert not (root / "runs" / RUN).exists()
    advance_and_compile(load_project(root, read_raw(root)))
    assert of_run(root).run == RUN
