"""What an attempt left whose runtime was killed: nobody judges it, and it is made safe to keep."""

from __future__ import annotations

import fcntl
import json
import time
from typing import IO, TYPE_CHECKING

from eop.agents.inspection import clean
from eop.agents.redact import Redactor
from eop.agents.workspace import Workspace

if TYPE_CHECKING:
    from pathlib import Path

# What a supervisor takes at most besides two times of grace: its last sweep.
_SWEEP_S = 15.0
_POLL_S = 0.1


def settle(directory: Path) -> bool:
    """Take keys and the attempt's token out of the folder of an attempt that was cut short.

    Its supervisor has seen the runtime die and ends every process; while it is at that it holds
    the lock on ``start.json``, and nothing is touched. Returns whether it was through in its time.
    """
    try:
        started = (directory / "start.json").open()
    except FileNotFoundError:
        return True
    with started:
        deadline = time.monotonic() + 2 * json.load(started)["grace_s"] + _SWEEP_S
        while not _is_free(started):
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_S)
        space, redactor = Workspace(directory), Redactor()
        clean(space, redactor)
        for folder in (space.tree, space.outputs):
            redactor.tree(folder)
    return True


def _is_free(stream: IO[str]) -> bool:
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
