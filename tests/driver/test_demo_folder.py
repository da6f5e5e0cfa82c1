"""Where the demo is made: an earlier one is replaced, and the folder itself stays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from eop.core.errors import EopError
from eop.driver.demo import make_project

if TYPE_CHECKING:
    from pathlib import Path


def test_an_earlier_demo_is_replaced_under_the_feet_of_nobody(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    make_project(folder)
    (folder / "runs").mkdir(exist_ok=True)
    (folder / "runs" / "old").touch()
    (folder / "shortcut").symlink_to(folder / "runs")
    before = folder.stat().st_ino
    make_project(folder)
    assert folder.stat().st_ino == before, "a shell that stands in it stands there still"
    assert not (folder / "runs" / "old").exists()
    assert not (folder / "shortcut").is_symlink()


def test_anything_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    with pytest.raises(EopError, match="EOP830"):
        make_project(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
