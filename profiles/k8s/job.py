"""Jobs of Snakemake as Jobs of Kubernetes, by kubectl: submit, status, cancel.

Snakemake's own executor for Kubernetes takes it that nothing is shared, and carries the inputs and
outputs of rules only. The record of a run is more than those: its trace, locks and snapshots lie
beside them. So every pod mounts the volume with the project, and runs Snakemake's script there.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any


def manifest(name: str, asked: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """The Job that runs the script ``asked.script`` in ``folder``."""
    requests = {"cpu": str(asked.cpus), "memory": f"{asked.ram}M"}
    limits = {"memory": f"{asked.ram}M"}
    if asked.gpus:
        limits["nvidia.com/gpu"] = str(asked.gpus)
    container = {
        "name": "job",
        "image": asked.image,
        "workingDir": str(folder),
        "command": ["sh", asked.script],
        "resources": {"requests": requests, "limits": limits},
        "volumeMounts": [{"name": "project", "mountPath": asked.volume}],
    }
    pod = {
        "restartPolicy": "Never",
        "containers": [container],
        "volumes": [{"name": "project", "persistentVolumeClaim": {"claimName": asked.claim}}],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": {"app": "rankevolve"}},
        "spec": {
            # Snakemake tries again, and knows of it: Kubernetes does not.
            "backoffLimit": 0,
            "activeDeadlineSeconds": 60 * asked.minutes,
            "ttlSecondsAfterFinished": 3600,
            "template": {"spec": pod},
        },
    }


def submit(asked: argparse.Namespace) -> str:
    """Make the job; its name, by which Snakemake asks for it."""
    label = re.sub(r"[^a-z0-9]+", "-", Path(asked.script).stem.lower()).strip("-")[:30]
    name = f"{label}-{uuid.uuid4().hex[:8]}"
    text = json.dumps(manifest(name, asked, Path.cwd()))
    _kubectl("create", "--filename", "-", stdin=text)
    return name


def status(name: str) -> str:
    """``running``, ``success`` or ``failed``, as Snakemake has it."""
    state = json.loads(_kubectl("get", "job", name, "--output", "json")).get("status", {})
    if state.get("succeeded"):
        return "success"
    return "failed" if state.get("failed") else "running"


def cancel(names: list[str]) -> None:
    """Delete jobs, their pods too."""
    _kubectl("delete", "job", "--ignore-not-found", *names)


def _kubectl(*arguments: str, stdin: str | None = None) -> str:
    done = subprocess.run(
        ["kubectl", *arguments], input=stdin, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"kubectl {arguments[0]}: {done.stderr.strip()}")
    return done.stdout


def main() -> None:
    """The command line that the profile names."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    asked = commands.add_parser("submit")
    for name in ("image", "claim", "volume"):
        asked.add_argument(f"--{name}", required=True)
    for name in ("cpus", "ram", "gpus", "minutes"):
        asked.add_argument(f"--{name}", type=int, required=True)
    asked.add_argument("script")
    commands.add_parser("status").add_argument("name")
    commands.add_parser("cancel").add_argument("names", nargs="+")
    given = parser.parse_args()
    if given.command == "submit":
        print(submit(given))
    elif given.command == "status":
        print(status(given.name))
    else:
        cancel(given.names)


if __name__ == "__main__":
    main()
