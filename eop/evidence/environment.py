"""Facts of the machine and the code that a result was made with. Nothing heavy is imported."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import eop
from eop.core.canonical import tree_digest
from eop.core.errors import EopError, ExitCode, Where

_PACKAGES = ("torch", "numpy", "pandas", "pyarrow", "snakemake", "dvc")
_GIT_TIMEOUT_S = 60.0


def environment_facts() -> dict[str, Any]:
    """Python, platform, CPU model, package versions (``None`` when absent) and eop's digest."""
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu": _cpu_model(Path("/proc/cpuinfo")),
        "packages": {name: _version(name) for name in _PACKAGES},
        "eop": code_digest(),
    }


def repository_facts(root: Path) -> dict[str, Any]:
    """``{head, dirty}`` of the git work tree at ``root``; both ``None`` where there is no git.

    ``dirty`` counts changed and untracked files alike. A repository without a commit has no head.
    Raises ``EOP942`` when git itself fails on a repository.
    """
    inside = _git(root, "rev-parse", "--is-inside-work-tree")
    if inside is None or inside.returncode != 0:
        return {"head": None, "dirty": None}
    head = _git(root, "rev-parse", "--verify", "--quiet", "HEAD")
    status = _git(root, "status", "--porcelain")
    if head is None or status is None or status.returncode != 0:
        raise EopError(
            "EOP942",
            f"git status failed: {status.stderr.strip() if status else 'git is gone'}",
            where=Where(str(root)),
            exit_code=ExitCode.ENVIRONMENT,
        )
    return {"head": head.stdout.strip() or None, "dirty": bool(status.stdout.strip())}


def code_digest(package: Path | None = None) -> str:
    """Digest of a package's Python sources (default: eop's): names and contents."""
    root = package or Path(eop.__file__).parent
    return tree_digest(root, sorted(root.rglob("*.py")))


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _cpu_model(cpuinfo: Path) -> str | None:
    if cpuinfo.is_file():
        for line in cpuinfo.read_text().splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    return platform.processor() or None


def _git(root: Path, *arguments: str) -> subprocess.CompletedProcess[str] | None:
    # No optional locks: looking at a repository must not disturb its owner's git.
    env = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        return subprocess.run(
            ["git", *arguments],
            cwd=root,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_GIT_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError:
        return None
