"""The profiles that ship: each plans, and jobs of Kubernetes ask for what their rules do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from conftest import ROOT

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
