"""The profiles that ship: each plans, and jobs of Kubernetes ask for what their rules do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
import yaml
from baseline_alone import baseline_alone
from conftest import ROOT
from snakemake.resources import GroupResources, Resources
from snakemake_executor_plugin_slurm.submit_string import get_submit_command
from snakemake_executor_plugin_slurm.utils import set_gres_string
from snakemake_executor_plugin_slurm.validation import validate_slurm_extra

if TYPE_CHECKING:
    from conftest import Project

KUBECTL = """\
#!{python}
import json, os, subprocess, sys
from pathlib import Path

here = Path(__file__).parent / "jobs"
here.mkdir(exist_ok=True)
if sys.argv[1] == "create":
    job = json.load(sys.stdin)
    name = job["metadata"]["name"]
    (here / f"{{name}}.json").write_text(json.dumps(job))
    container = job["spec"]["template"]["spec"]["containers"][0]
    status = subprocess.call(container["command"], cwd=container["workingDir"],
                             stdout=2, stdin=subprocess.DEVNULL)
    (here / f"{{name}}.end").write_text(str(status))
elif sys.argv[1] == "get":
    end = (here / f"{{sys.argv[3]}}.end").read_text()
    print(json.dumps({{"status": {{"succeeded": 1}} if end == "0" else {{"failed": 1}}}}))
"""


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["ci", "default", "k8s", "slurm"])
def test_a_dry_run_plans_the_same_jobs(fresh: Project, profile: str) -> None:
    done = fresh.command(
        sys.executable, "-m", "snakemake", "--profile", f"profiles/{profile}", "-n"
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert {"split", "it01_look"} <= set(done.stdout.split())
    assert not list(fresh.root.glob("runs/*/it01/*/outcome.json"))


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["k8s", "slurm", "default"])
def test_a_phase_with_several_gpus(
    fresh: Project, monkeypatch: pytest.MonkeyPatch, profile: str
) -> None:
    """A cluster is asked for them, whatever the head node has; a workstation must have them."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    baseline_alone(fresh, "cpus: 2, gpus: 4, ram: 16GB", threads="3")
    if profile == "default":
        for allowed, there in (([], 2), (["--resources", "gpu=1"], 1)):
            done = fresh.snakemake(*allowed)
            assert done.returncode == 9
            told = f"error[EOP813] phase 'baseline' asks for 4 GPUs, and {there} may be used here"
            assert told in done.stderr
        assert not (fresh.root / "data/splits").exists(), "a job has started"
        return
    done = fresh.command(
        sys.executable, "-m", "snakemake", "--profile", f"profiles/{profile}", "-n"
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "it01_baseline" in done.stdout.split()
    rules = (fresh.root / "runs/several-synthetic/rules/it01.smk").read_text()
    for line in ("threads: 12", "    gpu=4,", "    mem_mb=16000,"):
        assert f"    {line}\n" in rules, "three threads for each process"


class Asked(dict[str, object]):
    """Resources as the plugin reads them."""

    def __getattr__(self, name: str) -> object:
        return self[name]


@pytest.mark.parametrize("branches", [1, 4])
def test_slurm_looks_for_the_gpus_of_a_job_on_one_host(branches: int) -> None:
    """Snakemake adds up what the branches of a group ask for, but not text."""
    profile = yaml.safe_load((ROOT / "profiles/slurm/config.yaml").read_text())
    given = dict(text.split("=", 1) for text in profile["default-resources"])
    per_branch = {"gpu": 2, "mem_mb": 4000, "slurm_extra": given["slurm_extra"].strip("'")}
    summed = GroupResources.basic_layered(
        [[SimpleNamespace(resources=per_branch, pipe_group=None)] * branches],
        Resources.from_mapping({}),
        run_local=False,
    )
    job = SimpleNamespace(resources=Asked(summed), threads=6 * branches)
    validate_slurm_extra(job)
    names = ("run_uuid", "comment_str", "slurm_logfile", "workdir", "partition", "account")
    call = get_submit_command(job, dict.fromkeys(names, "x")) + set_gres_string(job)
    asked = {f"--gpus={2 * branches}", f"--cpus-per-task={6 * branches}", "-N1"}
    assert asked <= set(call.split()), call


def test_every_profile_has_what_keeps_a_run_right() -> None:
    kept = ("keep-going", "rerun-incomplete", "rerun-triggers", "max-checksum-file-size")
    profiles = {}
    for name in ("ci", "default", "k8s", "slurm"):
        path = ROOT / "profiles" / name / "config.yaml"
        profiles[name] = yaml.safe_load(path.read_text())
        assert "dvc=1" in profiles[name]["resources"]
    for key in kept:
        assert len({json.dumps(profile[key]) for profile in profiles.values()}) == 1, key


@pytest.mark.slow
def test_a_job_of_kubernetes_asks_for_what_its_rule_does(
    fresh: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubectl = tmp_path / "bin" / "kubectl"
    kubectl.parent.mkdir()
    kubectl.write_text(KUBECTL.format(python=sys.executable))
    kubectl.chmod(0o755)
    path = f"{kubectl.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    monkeypatch.setenv("PATH", path)
    profile = ("--profile", "profiles/k8s", "--seconds-between-status-checks", "1")
    target = "data/splits/synthetic/manifest.json"
    done = fresh.command(sys.executable, "-m", "snakemake", *profile, target)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (fresh.root / target).is_file()
    (made,) = (kubectl.parent / "jobs").glob("*.json")
    spec = json.loads(made.read_text())["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    assert spec["activeDeadlineSeconds"] == 3600
    assert container["workingDir"] == str(fresh.root)
    assert container["resources"] == {
        "requests": {"cpu": "1", "memory": "4000M"},
        "limits": {"memory": "4000M"},
    }


def test_a_gpu_is_a_limit_and_a_lost_job_has_failed(tmp_path: Path) -> None:
    kubectl = tmp_path / "kubectl"
    kubectl.write_text('#!/bin/sh\ncat > asked.json; echo \'{"status": {"failed": 1}}\'\n')
    kubectl.chmod(0o755)
    job = [sys.executable, str(ROOT / "profiles/k8s/job.py")]
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    asked = "--image i --claim c --volume /v --cpus 8 --ram 16000 --gpus 2 --minutes 90 It01_P01.sh"

    def call(*arguments: str) -> str:
        return subprocess.run(
            [*job, *arguments], cwd=tmp_path, env=env, capture_output=True, text=True, check=True,
            stdin=subprocess.DEVNULL,
        ).stdout.strip()  # fmt: skip

    assert call("submit", *asked.split()).startswith("it01-p01-")
    spec = json.loads((tmp_path / "asked.json").read_text())["spec"]
    limits = spec["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert limits == {"memory": "16000M", "nvidia.com/gpu": "2"}
    assert call("status", "it01-p01-0") == "failed"
