"""A project whose run has begun: nothing has been trained, and nothing will be."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from entry_samples import REPOSITORY

from eop.core.files import write_text
from eop.driver.start import open_run
from eop.driver.workflow import load_project
from eop.project.config import read_raw

if TYPE_CHECKING:
    from pathlib import Path

MINIMAL = "config/protocols/minimal.eop.md"


def copied_project(root: Path) -> Path:
    """Copy what a run of `minimal` needs to ``root``, and return ``root``."""
    for name in ("config", "hstu"):
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(REPOSITORY / name, root / name, ignore=ignore)
    config = root / "config" / "config.yaml"
    lines = config.read_text().splitlines()
    lines = [f"protocol: {MINIMAL}" if line.startswith("protocol:") else line for line in lines]
    write_text(config, "\n".join(lines) + "\n")
    return root


def begun_project(root: Path) -> Path:
    """A copied project at ``root`` in which the run of `minimal` has begun."""
    open_run(load_project(copied_project(root), read_raw(root)))
    return root
