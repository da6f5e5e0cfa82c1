"""How a command's text is coloured: by where it goes, by NO_COLOR and by FORCE_COLOR."""

from __future__ import annotations

import os
from typing import Any

from rich.console import Console


def console(**more: Any) -> Console:
    """A console for standard output; under NO_COLOR it writes no code at all, not even bold.

    Without NO_COLOR, FORCE_COLOR colours pipes and files too. ``more`` goes to ``rich``.
    """
    if os.environ.get("NO_COLOR"):
        more["color_system"] = None
    return Console(**more)
