"""Several GPUs on one workstation: each training has its own to itself."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eop.core.errors import EopError, ExitCode
from eop.driver import asking
from eop.driver.gpus import VISIBLE, devices, held, require

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def train(folder: Path, wanted: int) -> None:
    """What a job does: note when it had which GPUs."""
    with held(folder / "locks", "train", wanted) as count:
        mine = os.environ[VISIBLE]
        assert count == len(mine.split(","))
        began = time.monotonic()
        time.sleep(0.3)
        ended = time.monotonic()
    with (folder / "log").open("a") as log:
        log.write(f"{mine} {began} {ended}\n")


def assert_shared(folder: Path, there: str, jobs: Sequence[int]) -> None:
    """So many jobs, each with so many GPUs: all get what they ask for, none what another has."""
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=train, args=(folder, wanted)) for wanted in jobs]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * len(jobs)
    rows = [line.split() for line in (folder / "log").read_text().splitlines()]
    assert sorted(len(names.split(",")) for names, _, _ in rows) == sorted(jobs)
    spans = [
        (name, float(began), float(ended))
        for names, began, ended in rows
        for name in names.split(",")
    ]
    assert {name for name, _, _ in spans} <= set(there.split(","))
    spans.sort()
    for (one, _, ended), (other, began, _) in itertools.pairwise(spans):
        assert one != other or ended <= began


@pytest.mark.parametrize(
    ("there", "jobs"),
    [("0,GPU-4fa2,2", (1, 1, 2, 1, 3, 1)), ("0,1,2,3", (2, 2, 2, 2)), ("0,1,2", (2, 2, 2))],
)
def test_no_two_jobs_have_a_gpu_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: str, jobs: Sequence[int]
) -> None:
    monkeypatch.setenv(VISIBLE, there)
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    assert_shared(tmp_path, there, jobs)


def test_phases_side_by_side_in_one_job_of_a_scheduler_share_what_it_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VISIBLE, "0,1,2,3")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    assert_shared(tmp_path, "0,1,2,3", (2, 2, 1))


@pytest.mark.parametrize("job", [None, "7"])
def test_fewer_than_a_phase_asks_for_are_an_error_and_no_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, job: str | None
) -> None:
    monkeypatch.setenv(VISIBLE, "0,1")
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    if job:
        monkeypatch.setenv("SLURM_JOB_ID", job)
    with (
        pytest.raises(EopError, match=r"EOP813.*'refit' asks for 4 GPUs, and 2 may") as caught,
        held(tmp_path, "refit", 4),
    ):
        pass
    assert caught.value.exit_code == ExitCode.ENVIRONMENT
    assert caught.value.hint and "gpus: 2" in caught.value.hint


SNAKEFILE = """
import sys
from types import SimpleNamespace
from eop.driver.gpus import share

def all_of_them(wildcards):
    share(workflow, SimpleNamespace(phases=[SimpleNamespace(id="train", resources=ASKS)]))
    return ["a", "b", "c"]

ASKS = SimpleNamespace(gpus=2)
rule all:
    input: all_of_them
rule one:
    output: "{name}"
    resources: gpu=ASKS.gpus
    shell: "{sys.executable} job.py {output}"
"""


# It waits for a second one to begin, and gives a third one time to; how many are at work is noted.
JOB = """
import sys, time
from pathlib import Path

here = Path(f"{sys.argv[1]}.here")
here.touch()
Path(f"{sys.argv[1]}.begun").touch()
for _ in range(1200):
    if len(list(Path().glob("*.begun"))) > 1:
        break
    time.sleep(0.05)
else:
    sys.exit("one after the other")
time.sleep(1)
at_work = len(list(Path().glob("*.here")))
here.unlink()
Path(sys.argv[1]).write_text(str(at_work))
"""


def test_snakemake_starts_as_many_jobs_as_there_are_gpus_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of three jobs with two GPUs each, on a machine with five, two run at once."""
    monkeypatch.setenv(VISIBLE, "0,1,2,3,4")
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    (tmp_path / "job.py").write_text(JOB)
    command = [sys.executable, "-m", "snakemake", "--cores", "8", "--quiet"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert max(int((tmp_path / name).read_text()) for name in "abc") == 2


@given(wanted=st.integers(0, 8), there=st.integers(0, 8))
def test_what_is_required(wanted: int, there: int) -> None:
    """A machine without a GPU trains on its cores; any other has enough, or that is an error."""
    if there == 0 or wanted <= there:
        require("train", wanted, there)
    else:
        with pytest.raises(EopError, match="EOP813"):
            require("train", wanted, there)


def test_a_scheduler_has_shared_them_out_already(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VISIBLE, "3")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    with held(tmp_path / "locks", "train", 1) as count:
        assert (os.environ[VISIBLE], count) == ("3", 1)
    assert not (tmp_path / "locks").exists()


def test_without_a_gpu_a_training_goes_to_the_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VISIBLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with held(tmp_path / "locks", "train", 4) as count:
        assert count == 0
        assert VISIBLE not in os.environ


def test_which_there_are(tmp_path: Path) -> None:
    asked = tmp_path / "nvidia-smi"
    asked.write_text("#!/bin/sh\n[ \"$1\" = --query-gpu=index ] && printf '0\\n1\\n'\n")
    asked.chmod(0o755)
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    assert devices(path) == ["0", "1"]
    assert devices({**path, VISIBLE: "1"}) == ["1"]
    assert devices({**path, VISIBLE: ""}) == []
    assert devices({**path, VISIBLE: "-1"}) == []
    assert devices({**path, VISIBLE: "1, 0,-1,2"}) == ["1", "0"]
    asked.write_text("#!/bin/sh\nexit 9\n")
    assert devices(path) == []


def test_a_driver_that_never_answers_has_no_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "PATIENCE_S", 0.2)
    asked = tmp_path / "nvidia-smi"
    asked.write_text("#!/bin/sh\nexec sleep 30\n")
    asked.chmod(0o755)
    assert devices({"PATH": str(tmp_path)}) == []
