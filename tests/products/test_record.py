"""What is recorded of a product today is judged as its older recordings are."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from kits import CLAUDE, CODEX, ROOT, Kit
from record import CASES, record

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.products


@pytest.mark.parametrize("kit", [CLAUDE, CODEX])
def test_a_recording_is_judged_by_the_recorded_test(kit: Kit, tmp_path: Path) -> None:
    kit.product()
    for name in ("success", "api_401", "text_only"):
        record(kit, CASES[name], tmp_path / kit.name / kit.version / name)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", "recorded", "tests/agents/test_recorded.py"],
        cwd=ROOT, env={**os.environ, "RANKEVOLVE_AGENT_SAMPLES": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "4 passed" in done.stdout, done.stdout
