"""A project folder with the shipped artifact schemas and one target."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project")
    shutil.copytree(REPOSITORY / "config" / "schemas", root / "config" / "schemas")
    shutil.copytree(REPOSITORY / "config" / "prompts", root / "config" / "prompts")
    (root / "config" / "prompts" / "damaged.md").write_text("${task}\n\nSee ${tsk}.\n")
    (root / "config" / "schemas" / "damaged.schema.yaml").write_text("type: [\n")
    (root / "config" / "targets").mkdir()
    (root / "config" / "targets" / "hstu.yaml").write_text("name: hstu\n")
    return root
