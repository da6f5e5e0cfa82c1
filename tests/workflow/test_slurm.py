"""On a real Slurm of this machine, what goes wrong on clusters: `make test-slurm`."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import cluster as slurm
import pytest
import yaml
from baseline_alone import baseline_alone
from conftest import Project, copy_sources
from short_run import RUN, approve_all, leaderboard, playbook, short_project, to_the_end
from typed_pages import type_page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cluster import Cluster, Job

pytestmark = pytest.mark.slurm
_PATIENCE_S = 120.0
# A site's own settings: no accounting here, and what runs here takes seconds.
_SITE = [
    "--slurm-no-account",
    "--slurm-init-seconds-before-status-checks=1",
    "--seconds-between-status-checks=1",
]
_ONE_GPU = "resources: {gpus: 1}"
_ASKS = "resources: {cpus: 2, gpus: 1, ram: 1500MB}"


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """Two nodes, to which the commands of this process speak."""
    if lacking := slurm.missing():
        pytest.skip(f"no Slurm: {'; '.join(lacking)}")
    with slurm.running(tmp_path / "slurm") as found:
        for name in ("SLURM_CONF", "PATH"):
            monkeypatch.setenv(name, found.env[name])
        yield found


def test_with_a_job_ended_another_preempted_and_a_node_drained(
    tmp_path: Path, cluster: Cluster
) -> None:
    quiet = short_project(tmp_path / "quiet", ["no-residual"], epochs=12)
    protocol = quiet.root / "config/protocols/short.eop.md"
    text = protocol.read_text().replace("function: train\n", f"function: train\n{_ASKS}\n")
    protocol.write_text(text)
    shaken = Project(tmp_path / "shaken")
    shutil.copytree(quiet.root, shaken.root)
    to_the_end(quiet)

    with submitting(shaken) as done:
        ended(done)
    approve_all(shaken)
    with submitting(shaken) as done:
        first = training(shaken, cluster, "it01/baseline", "baseline")
        cluster.drain(first.node)
        cluster.cancel(first)
        ended(done)
    approve_all(shaken)
    with submitting(shaken) as done:
        preempted = training(shaken, cluster, "it01/p01/train", "training")
        cluster.preempt(preempted)
        ended(done)
    approve_all(shaken)
    to_the_end(shaken)

    assert leaderboard(shaken) == leaderboard(quiet)
    assert shaken.eop("verify").returncode == 0
    for node in ("it01/baseline", "it01/p01/train"):
        said = (shaken.root / "runs" / RUN / node / "work/train.stderr").read_text()
        assert "going on after epoch" in said
    abandoned = [one for one in shaken.recorded(RUN) if one["type"] == "node_abandoned"]
    assert [one["data"]["node"] for one in abandoned] == ["it01_baseline", "it01_p01_train"]

    jobs = cluster.jobs()
    again = [job for job in jobs if "baseline" in job.comment]
    assert [job.state for job in again] == ["CANCELLED", "COMPLETED"]
    assert first.node not in {job.node for job in jobs[jobs.index(again[0]) + 1 :]}
    assert all(word in preempted.comment for word in ("train", "evaluate"))
    assert preempted.asks["NumCPUs"] == "2"
    assert preempted.asks["MinMemoryNode"] in ("1500M", "4000M")
    assert "gpu:1" in preempted.asks["TresPerJob"]
    assert not any("implement" in job.comment or "publish" in job.comment for job in jobs)


def test_a_training_has_as_many_processes_as_its_job_has_gpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if lacking := slurm.missing():
        pytest.skip(f"no Slurm: {'; '.join(lacking)}")
    project = copy_sources(tmp_path / "project")
    baseline_alone(project, "gpus: 2")
    with slurm.running(tmp_path / "slurm", gpus=2) as cluster:
        for name in ("SLURM_CONF", "PATH"):
            monkeypatch.setenv(name, cluster.env[name])
        with submitting(project) as done:
            ended(done)
        (job,) = [job for job in cluster.jobs() if "baseline" in job.comment]
    assert "gpu:2" in job.asks["TresPerJob"]
    assert (job.state, job.asks["NumCPUs"]) == ("COMPLETED", "2")
    assert job.node in cluster.nodes
    work = project.root / "runs/several-synthetic/it01/baseline/work"
    runtime = json.loads((work / "seed1/checkpoint.json").read_text())["runtime"]
    assert (runtime["processes"], runtime["device"]) == (2, "cpu")


def test_the_trainings_of_an_iteration_are_one_job_where_they_are_grouped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if lacking := slurm.missing():
        pytest.skip(f"no Slurm: {'; '.join(lacking)}")
    project = short_project(tmp_path / "project", ["no-residual", "another"])
    steps = playbook(["no-residual", "another"])
    del steps["steps"][1]["when"]["proposal"]
    (project.root / "config/playbooks/short.yaml").write_text(yaml.safe_dump(steps))
    protocol = project.root / "config/protocols/short.eop.md"
    text = protocol.read_text()
    protocol.write_text(text.replace("function: train\n", f"function: train\n{_ONE_GPU}\n"))
    with slurm.running(tmp_path / "slurm", cpus=4, gpus=2, ram_mb=9000) as cluster:
        for name in ("SLURM_CONF", "PATH"):
            monkeypatch.setenv(name, cluster.env[name])
        while not (found := [job for job in cluster.jobs() if "evaluate" in job.comment]):
            approve_all(project)
            with submitting(project, "--group-components", "training=2") as done:
                ended(done)
    (job,) = found
    assert (job.state, job.asks["NumCPUs"]) == ("COMPLETED", "2")
    assert "gpu:2" in job.asks["TresPerJob"]
    for branch in ("p01", "p02"):
        left = project.root / f"runs/{RUN}/it01/{branch}/evaluate/outcome.json"
        assert json.loads(left.read_text())["outcome"] == "completed"


def test_the_tutorial(tmp_path: Path, cluster: Cluster) -> None:
    often = "slurm-init-seconds-before-status-checks: 1\\nseconds-between-status-checks: 1"
    instead = {'echo "slurm-no-account: true"': f'printf "slurm-no-account: true\\n{often}\\n"'}

    type_page("docs/tutorials/cluster.md", tmp_path, instead).check()

    ran = " ".join(job.comment for job in cluster.jobs() if job.state == "COMPLETED")
    assert all(word in ran for word in ("train", "evaluate", "baseline"))
    assert "investigate" not in ran


@contextmanager
def submitting(project: Project, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    """`snakemake --profile profiles/slurm` at work; what it says is kept beside the project."""
    command = [sys.executable, "-m", "snakemake", "--profile", "profiles/slurm", *_SITE, *more]
    with (
        project.root.with_suffix(".log").open("ab") as said,
        subprocess.Popen(
            command, cwd=project.root, stdin=subprocess.DEVNULL, stdout=said, stderr=said
        ) as process,
    ):
        try:
            yield process
        finally:
            process.terminate()


def ended(process: subprocess.Popen[bytes]) -> None:
    assert process.wait(3 * _PATIENCE_S) == 0


def training(project: Project, cluster: Cluster, node: str, word: str) -> Job:
    """The job of ``node`` once it has trained for an epoch; ``word`` stands in its comment."""
    snapshot = project.root / "runs" / RUN / node / "work/seed1/snapshot.pt"
    until(snapshot.is_file)
    return next(job for job in cluster.jobs() if word in job.comment and job.state == "RUNNING")


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.02)
