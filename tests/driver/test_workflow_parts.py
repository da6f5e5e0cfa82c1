"""The run lock, the last words of a call, the command line of Snakemake, the graph, products."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from function_runs import plan_of, small
from research_run import Run, research
from small_project import small_project

from eop.compile.graph import mermaid
from eop.compile.run import compile_run
from eop.core.errors import EopError, ExitCode
from eop.core.files import write_json, write_text
from eop.driver.agent import products
from eop.driver.announce import closing_lines
from eop.driver.loop import how_it_ended, run_until_still, snakemake_command
from eop.driver.start import open_run
from eop.driver.workflow import Flow, advance_and_compile, load_project, lock_project
from eop.project.config import read_raw
from eop.project.project import Project
from eop.protocol.model import Budget

if TYPE_CHECKING:
    from pathlib import Path

_HOLDER = """
import sys
from pathlib import Path
from eop.core.locks import acquire
lock = acquire(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def test_leftover_locks_of_snakemake_are_cleared(tmp_path: Path) -> None:
    for name in ("0.input.lock", "0.output.lock"):
        write_text(tmp_path / ".snakemake/locks" / name, "x")
    write_text(tmp_path / ".snakemake/metadata/kept", "x")
    with lock_project(tmp_path):
        assert list((tmp_path / ".snakemake/locks").iterdir()) == []
        assert (tmp_path / ".snakemake/metadata/kept").is_file()
    lock_project(tmp_path).close()


@pytest.mark.parametrize(
    ("status", "meaning"), [(8, ExitCode.LOCKED), (5, ExitCode.CONFIG), (3, 1), (1, 1), (-9, 1)]
)
def test_eop_run_ends_with_the_status_that_its_snakemake_means(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, meaning: int
) -> None:
    root = small_project(tmp_path)
    command = [sys.executable, "-c", f"import os, signal; s = {status}; "
               "os.kill(os.getpid(), -s) if s < 0 else os._exit(s)"]  # fmt: skip
    monkeypatch.setattr("eop.driver.loop.snakemake_command", lambda *_, **__: command)
    told = f"status {status};" if status > 0 else r"killed by signal 9 \(Killed\)\n"
    with pytest.raises(EopError, match=f"EOP820.*{told}") as caught:
        run_until_still(root, {}, cores=1)
    assert caught.value.exit_code == meaning


def test_how_snakemake_ended_is_told_in_words() -> None:
    assert how_it_ended(1) == "snakemake ended with status 1; its own message stands above"
    assert how_it_ended(-9) == "snakemake was killed by signal 9 (Killed)"


def test_a_halted_run_excuses_jobs_that_may_not_run_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = small_project(tmp_path)
    begun = load_project(root, read_raw(root))
    open_run(begun).append("run_paused", {"by": "me", "reason": ""})
    for status in (1, 7):
        command = [sys.executable, "-c", f"import os; os._exit({status})"]
        monkeypatch.setattr("eop.driver.loop.snakemake_command", lambda *_, c=command, **__: c)
        if status == 1:
            assert run_until_still(root, {}, cores=1).state.halt is not None
            continue
        with pytest.raises(EopError, match="EOP820"):
            run_until_still(root, {}, cores=1)


def test_a_held_lock_is_refused_and_nothing_is_cleared(tmp_path: Path) -> None:
    write_text(tmp_path / ".snakemake/locks/0.input.lock", "of the live one")
    argv = [sys.executable, "-c", _HOLDER, str(tmp_path / "runs" / ".lock")]
    holder = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(EopError, match=f"EOP810.*{holder.pid}") as caught:
        lock_project(tmp_path)
    assert caught.value.exit_code == ExitCode.LOCKED
    assert (tmp_path / ".snakemake/locks/0.input.lock").is_file()
    holder.kill()
    holder.communicate()
    lock_project(tmp_path).close()
    assert not (tmp_path / ".snakemake/locks/0.input.lock").exists()


def test_a_closed_gate_says_what_to_read_and_to_touch(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.do("it01_investigate")
    position = run.advance()
    project = Project(tmp_path, small(tmp_path / "other").project.config, run.plan)
    (text,) = closing_lines(project, position)
    digest = position.waiting[0].digest
    assert text.splitlines()[:4] == [
        "GATE CLOSED: confirm (iteration 1)",
        f"  read  gates/r1/it01-confirm.{digest}.request.md",
        f"  yes   touch gates/r1/it01-confirm.{digest}.approved",
        f"  no    touch gates/r1/it01-confirm.{digest}.rejected",
    ]
    (run.gates / f"it01-confirm.{'0' * 16}.approved").touch()
    (text,) = closing_lines(project, run.advance())
    assert "  note  it01-confirm.0000000000000000.approved: decides nothing" in text


def test_a_call_that_moved_the_run_leaves_no_older_page(tmp_path: Path) -> None:
    project = load_project(small_project(tmp_path), read_raw(tmp_path))
    flow = Flow(project, lock_project(tmp_path), advance_and_compile(project).state.seq)
    written: list[str] = []

    def write_page(root: Path, run: str) -> None:
        assert root == tmp_path
        written.append(run)

    page = project.run_dir / "report.html"
    write_text(page, "made by a job: running")
    flow.close(write_page)
    assert written == [], "nothing has happened since the call began"
    open_run(project).append("run_cancelled", {"by": "me", "reason": ""})
    page.unlink()
    flow.close(write_page)
    assert written == [], "no rows, no page"
    write_text(page, "made by a job: running")
    flow.close(write_page)
    assert written == [project.run]


@pytest.mark.parametrize("reason", ["completed", "failed"])
def test_the_end_of_a_run(tmp_path: Path, reason: str) -> None:
    project = small(tmp_path).project
    position = replace(Run(tmp_path / "x", research()).advance(), waiting=(), ended=reason)
    (text,) = closing_lines(project, position)
    assert text.startswith(f"RUN ENDED: {reason}\n")
    assert ("eop status --run r1" in text) == (reason == "failed")
    assert "report.html" not in text, "there is none"
    write_text(project.run_dir / "report.html", "")
    (text,) = closing_lines(project, position)
    assert "runs/r1/report.html" in text
    assert "git commit" in text
    (text,) = closing_lines(small(tmp_path / "c", commit=True).project, position)
    assert "git commit" not in text


def test_config_values_on_snakemake_s_command_line() -> None:
    command = snakemake_command({"run": None, "threads": 2, "commit": True}, cores=3, extra=["-n"])
    assert command[1:] == [
        "-m", "snakemake", "--config", "run=", "threads=2", "commit=True", "--cores", "3", "-n",
    ]  # fmt: skip
    assert "--config" not in snakemake_command({}, cores=1)


@pytest.mark.parametrize(("value", "plain"), [("1", True), ("", False)])
def test_snakemake_is_told_of_no_color(
    value: str, plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", value)
    assert ("--nocolor" in snakemake_command({}, cores=1)) is plain


def test_the_graph_of_a_protocol() -> None:
    lines = mermaid(research()).splitlines()
    assert lines[0] == "flowchart LR"
    text = {line.strip() for line in lines}
    assert {
        "investigate[investigate]",
        "confirm{{confirm}}",
        "train[[train]]",
        "investigate --> confirm",
        "confirm --> propose",
        "implement --> train",
        "analyze --> promote",
        "confirm -. no, at most once .-> investigate",
        "evolve == at most 2 iterations ==> propose",
    } <= text
    assert "evolve -. no" not in mermaid(research())
    assert "==>" not in mermaid(research(loop=None))


def test_a_protocol_without_agents_needs_no_playbook(tmp_path: Path) -> None:
    plan = plan_of()
    alone = replace(plan, phases=plan.phases[:1])
    project = Project(tmp_path, small(tmp_path).project.config, alone)
    assert products(project) == {}
    with pytest.raises((EopError, OSError)):
        products(replace(project, plan=plan))


def test_a_job_has_time_for_all_attempts_of_its_node(tmp_path: Path) -> None:
    plan = plan_of()
    first = replace(plan.phases[0], budget=Budget(wall_s=600, attempts=3))
    run = small(tmp_path, plan=replace(plan, phases=(first, *plan.phases[1:])))
    write_json(run.project.run_dir / "base" / "snapshot.json", {"path": "data/s.tar"})
    position = run.run.advance()
    files = compile_run(run.project, position.state, position.frontier).files
    text = files[run.project.rules_dir / "it01.smk"]
    assert "        runtime=31,\n" in text
    assert files == compile_run(run.project, position.state, position.frontier).files
