"""The data set's split: made once per data set, by `hstu data split`."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from eop.core.errors import EopError, ExitCode
from eop.project.config import SYNTHETIC

if TYPE_CHECKING:
    from pathlib import Path

    from eop.project.project import Project

_SYNTHETIC_SEED = "7"


def require_raw_data(project: Project) -> None:
    """Stop early, with advice, when a data set is asked for that is not there (EOP631)."""
    if project.config.dataset == SYNTHETIC or project.raw_dir.is_dir():
        return
    raise EopError(
        "EOP631",
        f"data set '{project.config.dataset}' is not at {project.raw_dir}",
        hint=_advice(project.root, project.config.dataset, project.config.data_dir),
        exit_code=ExitCode.DATA,
    )


def make_split(root: Path, dataset: str, source: str) -> None:
    """Write ``data/splits/<dataset>/``; the synthetic data set is made first.

    Raises ``EopError`` (EOP630) with the reader's own message when the raw data are unusable.
    """
    raw = root / source
    if dataset == SYNTHETIC and not raw.is_dir():
        _hstu(root, "data", "synthesize", "--seed", _SYNTHETIC_SEED, "--out", str(raw))
    out = root / "data" / "splits" / dataset
    _hstu(root, "data", "split", "--source", str(raw), "--out", str(out))


def _advice(root: Path, dataset: str, folder: str) -> str:
    done = _start(root, "data", "where", dataset, "--folder", folder)
    return done.stdout.strip()


def _hstu(root: Path, *arguments: str) -> None:
    done = _start(root, *arguments)
    print(done.stdout, done.stderr, sep="", end="", file=sys.stderr, flush=True)
    if done.returncode:
        raise EopError(
            "EOP630",
            f"`hstu {' '.join(arguments)}` failed:\n{done.stderr.strip()}",
            exit_code=_exit_code(done.returncode),
        )


def _start(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hstu", *arguments],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def _exit_code(status: int) -> ExitCode:
    return ExitCode(status) if status in set(ExitCode) else ExitCode.FAILURE
