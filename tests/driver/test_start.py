"""A run begins once, pins what it is about, and goes on only as what it began as."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from begun import copied_project
from function_runs import config, plan_of

from eop.core.canonical import file_digest
from eop.core.errors import EopError, ExitCode
from eop.core.files import write_text
from eop.driver.node import run_node
from eop.driver.pinned import changed_pins
from eop.driver.start import open_run
from eop.driver.workflow import load_project
from eop.project.config import read_raw
from eop.project.project import Project
from eop.runtime.trace import Trace

if TYPE_CHECKING:
    from pathlib import Path

KEY = "it01_propose"


def project(root: Path, **changes: Any) -> Project:
    if not (root / "hstu").exists():
        write_text(
            root / "config/targets/toy.yaml",
            "name: toy\nsnapshot: [hstu]\neditable: [hstu/models/**]\n",
        )
        write_text(root / "hstu/a.py", "a = 1\n")
        write_text(root / "config/experiments/base.yaml", "name: base\n")
        write_text(root / "data/splits/toy/manifest.json", "{}")
    return Project(root, config(**changes), plan_of())


def test_a_run_begins_once(tmp_path: Path) -> None:
    trace = open_run(project(tmp_path))
    (event,) = trace.events()
    assert event.type == "run_started"
    write_text(tmp_path / "config/experiments/base.yaml", "name: edited\n")
    write_text(tmp_path / "hstu/a.py", "a = 2\n")
    again = project(tmp_path)
    assert len(open_run(again).events()) == 1
    assert again.base_experiment.read_text() == "name: base\n", "edits do not reach a run"
    assert trace.state().snapshot.startswith(again.snapshot.stem)


def test_a_start_that_was_killed_before_its_first_event_starts_again(tmp_path: Path) -> None:
    first = project(tmp_path)
    open_run(first)
    next(first.trace_dir.glob("*.json")).unlink()
    write_text(tmp_path / "config/experiments/base.yaml", "name: edited\n")
    open_run(project(tmp_path))
    assert first.base_experiment.read_text() == "name: edited\n"


def test_a_missing_experiment_starts_nothing(tmp_path: Path) -> None:
    with pytest.raises(EopError, match="EOP611"):
        open_run(project(tmp_path, experiment="config/experiments/none.yaml"))
    assert not (tmp_path / "runs").exists()


def test_missing_data_start_nothing_so_that_their_place_may_still_be_named(tmp_path: Path) -> None:
    copied_project(tmp_path)

    def chosen(**overrides: Any) -> Project:
        return load_project(tmp_path, read_raw(tmp_path, {"dataset": "nosuch", **overrides}))

    with pytest.raises(EopError, match="EOP630"):
        open_run(chosen())
    assert not (tmp_path / "runs").exists()
    (tmp_path / "mine").mkdir()
    trace = open_run(chosen(data_dir="mine"))
    (tmp_path / "mine").rmdir()
    assert len(open_run(chosen(data_dir="mine")).events()) == len(trace.events()) == 1


def test_another_procedure_is_refused(tmp_path: Path) -> None:
    open_run(project(tmp_path))
    other = replace(project(tmp_path), plan=plan_of(turns=9))
    with pytest.raises(EopError, match="EOP710") as caught:
        open_run(other)
    assert caught.value.exit_code == ExitCode.STATE
    assert "--config run=r1-2" in str(caught.value)


def test_another_config_is_refused_by_name(tmp_path: Path) -> None:
    open_run(project(tmp_path))
    with pytest.raises(EopError, match="EOP711") as caught:
        open_run(project(tmp_path, threads=4, commit=True))
    assert "threads: 1 -> 4" in str(caught.value)
    assert "commit" not in str(caught.value)


@pytest.mark.parametrize("commit", [True, False])
def test_whether_to_commit_may_change_and_reaches_the_jobs(tmp_path: Path, commit: bool) -> None:
    open_run(project(tmp_path, commit=not commit))
    open_run(project(tmp_path, commit=commit))
    assert Project.of_run(tmp_path, "r1").config.commit is commit


def test_an_edited_copy_of_the_config_is_refused(tmp_path: Path) -> None:
    """Jobs read it: with both edited alike, only the trace knows better."""
    begun = project(tmp_path)
    open_run(begun)
    path = begun.run_dir / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "threads": 4}))
    with pytest.raises(EopError, match="EOP712") as caught:
        open_run(project(tmp_path, threads=4))
    assert str(caught.value).startswith("runs/r1/config.json: ")


@pytest.mark.parametrize("pinned", ["experiment", "snapshot"])
def test_neither_a_run_nor_a_job_goes_on_with_an_edited_copy(tmp_path: Path, pinned: str) -> None:
    begun = project(tmp_path)
    state = open_run(begun).state()
    path = begun.base_experiment if pinned == "experiment" else begun.snapshot
    content = path.read_bytes()
    for spoil in (lambda: path.write_bytes(content + b" "), path.unlink):
        spoil()
        assert changed_pins(begun, state) == [path]
        for goes_on in (lambda: open_run(project(tmp_path)), lambda: run_node(tmp_path, "r1", KEY)):
            with pytest.raises(EopError, match="EOP712") as caught:
                goes_on()
            assert str(caught.value).startswith(f"{path.relative_to(tmp_path)}: ")
    assert len(Trace(begun.trace_dir, begun.plan).events()) == 1, "nothing has been entered"
    path.write_bytes(content)
    assert changed_pins(begun, state) == []


def test_what_an_earlier_version_began_says_nothing_of_its_experiment(tmp_path: Path) -> None:
    begun = project(tmp_path)
    state = open_run(begun).state()
    write_text(begun.base_experiment, "name: edited\n")
    assert changed_pins(begun, replace(state, experiment=None)) == []


@pytest.mark.parametrize("entry", ["r1-base", "r1-popularity", "r1-it02-p03"])
def test_a_name_whose_entries_are_history_is_refused(tmp_path: Path, entry: str) -> None:
    write_text(tmp_path / "leaderboard" / entry / "entry.yaml", "x")
    with pytest.raises(EopError, match=f"EOP713.*{entry}") as caught:
        open_run(project(tmp_path))
    assert "--config run=r1-2" in str(caught.value)
    assert not (tmp_path / "runs").exists()
    open_run(project(tmp_path, run="r1-2"))
    open_run(project(tmp_path, run="r"))


def test_a_run_of_another_version_is_an_error_not_a_traceback(tmp_path: Path) -> None:
    begun = project(tmp_path)
    open_run(begun)
    path = begun.run_dir / "config.json"
    facts = json.loads(path.read_text())
    del facts["threads"]
    path.write_text(json.dumps(facts))
    with pytest.raises(EopError, match="EOP613"):
        Project.of_run(tmp_path, "r1")


def test_who_may_sign_is_fixed_when_the_run_begins(tmp_path: Path) -> None:
    chosen = {"signers": "config/allowed_signers"}
    signers = tmp_path / "config/allowed_signers"
    with pytest.raises(EopError, match="EOP614"):
        open_run(project(tmp_path, **chosen))
    write_text(signers, "# nobody yet\n")
    with pytest.raises(EopError, match="it names nobody"):
        open_run(project(tmp_path, **chosen))
    assert not (tmp_path / "runs").exists()
    line = "alice ssh-ed25519 AAAA\n"
    write_text(signers, line)
    begun = project(tmp_path, **chosen)
    assert open_run(begun).state().signers == file_digest(signers)
    assert (begun.run_dir / "base/allowed_signers").read_text() == line
    write_text(signers, line + "mallory ssh-ed25519 BBBB\n")
    with pytest.raises(EopError, match="EOP715"):
        open_run(project(tmp_path, **chosen))
    signers.unlink()
    with pytest.raises(EopError, match="EOP614"):
        open_run(project(tmp_path, **chosen))
    with pytest.raises(EopError, match="EOP711"):
        open_run(project(tmp_path))
    write_text(signers, line)
    assert len(open_run(project(tmp_path, **chosen)).events()) == 1
