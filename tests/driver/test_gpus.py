"""Several GPUs on one workstation: each training has one to itself."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import time
from typing import TYPE_CHECKING

from eop.driver import asking
from eop.driver.gpus import VISIBLE, devices, held

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def train(folder: Path, wanted: int) -> None:
    """What a job does: note when it had which GPUs."""
    with held(folder / "locks", wanted):
        mine = os.environ[VISIBLE]
        began = time.monotonic()
        time.sleep(0.3)
        ended = time.monotonic()
    with (folder / "log").open("a") as log:
        log.write(f"{mine} {began} {ended}\n")


def test_no_two_jobs_have_a_gpu_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VISIBLE, "0,GPU-4fa2,2")
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    context = multiprocessing.get_context("fork")
    jobs = [context.Process(target=train, args=(tmp_path, wanted)) for wanted in (1, 1, 2, 1, 5, 1)]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join(60)
    rows = [line.split() for line in (tmp_path / "log").read_text().splitlines()]
    assert sorted(len(names.split(",")) for names, _, _ in rows) == [1, 1, 1, 1, 2, 3]
    spans = [
        (name, float(began), float(ended))
        for names, began, ended in rows
        for name in names.split(",")
    ]
    assert {name for name, _, _ in spans} == {"0", "GPU-4fa2", "2"}
    spans.sort()
    for (one, _, ended), (other, began, _) in itertools.pairwise(spans):
        assert one != other or ended <= began


def test_a_scheduler_has_shared_them_out_already(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VISIBLE, "3")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    with held(tmp_path / "locks", 1):
        assert os.environ[VISIBLE] == "3"
    assert not (tmp_path / "locks").exists()


def test_without_a_gpu_a_training_goes_to_the_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VISIBLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with held(tmp_path / "locks", 1):
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
