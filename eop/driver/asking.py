"""What a program of this machine says when it is asked."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

PATIENCE_S = 60


def said(command: Sequence[str]) -> str | None:
    """What a program prints; ``None`` when it is not there, fails or does not end."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            errors="replace", timeout=PATIENCE_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
