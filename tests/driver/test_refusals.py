"""What is shown of Snakemake's errors while a run is paused: all that is one, and no other."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest
from begun import begun_project
from snakemake_interface_logger_plugins.common import LogEvent

from eop.driver.loop import position_of
from eop.driver.refusals import Refusals
from eop.project.project import Project
from eop.runtime.lifecycle import enter, leave
from eop.runtime.node import Instance, NodeResult, Outcome
from eop.runtime.trace import Trace

if TYPE_CHECKING:
    from pathlib import Path

LAST = "Exiting because a job execution failed. Look above for error messages"
STATUS_3 = "Command '...' returned non-zero exit status 3."


@pytest.fixture
def project(tmp_path: Path) -> Project:
    root = begun_project(tmp_path)
    found = Project.of_run(root, "minimal-synthetic")
    position_of(found)
    return found


def record(text: str = "", event: str | None = None, **more: Any) -> logging.LogRecord:
    made = logging.LogRecord("snakemake", logging.ERROR, "", 0, text, (), None)
    made.__dict__.update({"event": event, **more})
    return made


def failed(name: str) -> logging.LogRecord:
    return record(f"Error in rule {name}", LogEvent.JOB_ERROR, rule_name=name)


def pause(project: Project) -> None:
    Trace(project.trace_dir, project.plan).append("run_paused", {"by": "ann", "reason": "lunch"})


def test_in_a_run_that_is_not_halted_every_error_is_shown(project: Project) -> None:
    refusals = Refusals(project)
    for one in (failed("it01_look"), record(STATUS_3), record(LAST)):
        assert refusals.filter(one)
    assert not refusals.are_all


def test_a_job_that_a_pause_refuses_is_no_error(project: Project) -> None:
    refusals = Refusals(project)
    pause(project)
    for one in (record(STATUS_3, LogEvent.ERROR), failed("it01_look"), record(LAST)):
        assert not refusals.filter(one)
    assert refusals.are_all


@pytest.mark.parametrize("name", ["it01_look", "report", "it01_nosuch", "all"])
def test_a_job_that_had_begun_or_is_no_node_has_failed_all_the_same(
    project: Project, name: str
) -> None:
    enter(Trace(project.trace_dir, project.plan), project.plan, Instance.parse("it01_look"))
    refusals = Refusals(project)
    pause(project)
    assert refusals.filter(failed(name))
    assert refusals.filter(record(LAST))
    assert not refusals.are_all


def test_one_failure_among_refusals_is_a_failure(project: Project) -> None:
    refusals = Refusals(project)
    pause(project)
    assert not refusals.filter(failed("it01_look"))
    assert refusals.filter(failed("report"))
    assert refusals.filter(record(LAST))
    assert not refusals.are_all


def group(*names: str) -> logging.LogRecord:
    jobs = [{"rule_name": name} for name in names]
    return record("Error in group", LogEvent.GROUP_ERROR, job_error_info=jobs)


def end(project: Project, name: str) -> None:
    """A node that has its last outcome."""
    trace, node = Trace(project.trace_dir, project.plan), Instance.parse(name)
    enter(trace, project.plan, node)
    leave(trace, project.root, node, 1, NodeResult(Outcome.BLOCKED, "for this test"))


def test_of_a_group_that_is_cut_short_what_had_left_is_neither_refused_nor_failed(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    end(project, "it01_look")
    refusals = Refusals(project)
    pause(project)
    for one in (group("it01_look", "it01_advise"), failed("it01_look"), failed("it01_advise")):
        assert not refusals.filter(one)
    assert refusals.are_all
    assert [message.split(":")[0] for message in caplog.messages] == ["it01_advise has not begun"]


def test_a_job_that_fails_after_its_node_has_left_has_failed(project: Project) -> None:
    end(project, "it01_look")
    refusals = Refusals(project)
    pause(project)
    for one in (group("it01_look"), failed("it01_look"), record(LAST)):
        assert refusals.filter(one)
    assert not refusals.are_all


def test_a_group_of_jobs_and_other_words(project: Project) -> None:
    refusals = Refusals(project)
    pause(project)
    assert not refusals.filter(group("it01_look", "it01_advise"))
    assert refusals.filter(group("it01_look", "report"))
    assert refusals.filter(record("disk full", LogEvent.ERROR))
    quiet = record("just words")
    quiet.levelno = logging.INFO
    assert refusals.filter(quiet)
