"""What an attempt left whose runtime was killed: nobody judges it, and it is made safe to keep."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from eop.agents.inspection import clean
from eop.agents.redact import Redactor
from eop.agents.workspace import Workspace
from eop.core.files import read_json

if TYPE_CHECKING:
    from pathlib import Path

# What a supervisor takes at most besides two times of grace: its last sweep.
_SWEEP_S = 15.0
_POLL_S = 0.1


def settle(directory: Path) -> bool:
    """Take keys and the attempt's token out of the folder of an attempt that was cut short.

    Its supervisor has seen the runtime die and ends every process; until it says so, nothing is
    touched. Returns whether it said so in the time that it has.
    """
    started, ended = directory / "start.json", directory / "exit.json"
    if not started.is_file():
        return True
    deadline = time.monotonic() + 2 * read_json(started)["grace_s"] + _SWEEP_S
    while not ended.is_file():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    space, redactor = Workspace(directory), Redactor()
    clean(space, redactor)
    for folder in (space.tree, space.outputs):
        redactor.tree(folder)
    return True
