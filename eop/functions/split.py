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


def require_data(project: Project) -> None:
    """Stop before any job, with the reader's advice, when a data set is not where it should be.

    A split that was made before needs no raw data. Raises ``EopError`` (EOP630).
    """
    config = project.config
    if (project.split_dir / "manifest.json").is_file():
        return
    if not _is_made(config.dataset, config.data_dir) and not project.raw_dir.is_dir():
        make_split(project.root, config.dataset, config.data_dir)


def make_split(root: Path, dataset: str, source: str) -> None:
    """Write ``data/splits/<dataset>/``; the synthetic data set is made first.

    Raises ``EopError`` (EOP630) with the reader's own message when the raw data are unusable.
    """
    raw = root / source
    if _is_made(dataset, source) and not raw.is_dir():
        _hstu(root, "synthesize", "--seed", _SYNTHETIC_SEED, "--out", str(raw))
    out = root / "data" / "splits" / dataset
    _hstu(root, "split", "--source", str(raw), "--out", str(out))


def _is_made(dataset: str, source: str) -> bool:
    """Whether the raw data are made on the spot: the synthetic set at its own place, no other."""
    return dataset == SYNTHETIC and source == f"data/raw/{SYNTHETIC}"


def _hstu(root: Path, *arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hstu", "data", *arguments],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        known = done.returncode in set(ExitCode)
        raise EopError(
            "EOP630",
            f"the data set cannot be used:\n{done.stderr.strip()}",
            hint="options of the reader: `hstu data split --help`; what it leaves in "
            "data/splits/ is taken as it is",
            exit_code=ExitCode(done.returncode) if known else ExitCode.FAILURE,
        )
    print(done.stdout, end="", file=sys.stderr)
