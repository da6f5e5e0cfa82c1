"""GPUs of a machine without a scheduler: which there are, and which of them a job has to itself."""

from __future__ import annotations

import os
import shutil
import socket
import time
from contextlib import ExitStack, contextmanager
from itertools import takewhile
from typing import IO, TYPE_CHECKING

from eop.core.locks import LockHeldError, acquire
from eop.driver.asking import said

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

VISIBLE = "CUDA_VISIBLE_DEVICES"
# A scheduler gives a job its GPUs, and says in the environment that the process is a job's.
_SCHEDULERS = ("SLURM_JOB_ID", "KUBERNETES_SERVICE_HOST")
_POLL_S = 0.5


def devices(env: Mapping[str, str]) -> list[str]:
    """The GPUs that a process with this environment may use, as CUDA names them.

    What stands behind an empty or a negative one is hidden; -1 hides them all.
    """
    if VISIBLE in env:
        names = (part.strip() for part in env[VISIBLE].split(","))
        return list(takewhile(lambda name: name and not name.startswith("-"), names))
    program = shutil.which("nvidia-smi", path=env.get("PATH"))
    if program is None:
        return []
    return (said([program, "--query-gpu=index", "--format=csv,noheader"]) or "").split()


@contextmanager
def held(folder: Path, wanted: int) -> Iterator[None]:
    """Have ``wanted`` GPUs to oneself for the length of a block: children see no other.

    Waits until so many are free, or all where the machine has fewer; locks lie in ``folder``.
    Under a scheduler, which has done all that, and on a machine without a GPU nothing changes.
    """
    there = devices(os.environ) if wanted else []
    if not there or any(name in os.environ for name in _SCHEDULERS):
        yield
        return
    before = os.environ.get(VISIBLE)
    with ExitStack() as stack:
        mine = _taken(folder, there, min(wanted, len(there)), stack)
        os.environ[VISIBLE] = ",".join(mine)
        try:
            yield
        finally:
            del os.environ[VISIBLE]
            if before is not None:
                os.environ[VISIBLE] = before


def _taken(folder: Path, there: list[str], wanted: int, stack: ExitStack) -> list[str]:
    """So many of the GPUs, their locks on the stack. Who gets too few gives them back and waits."""
    while True:
        locks: dict[str, IO[str]] = {}
        for name in there:
            try:
                locks[name] = acquire(folder / f"{socket.gethostname()}-{name}.lock")
            except LockHeldError:
                continue
            if len(locks) == wanted:
                for lock in locks.values():
                    stack.enter_context(lock)
                return list(locks)
        for lock in locks.values():
            lock.close()
        time.sleep(_POLL_S)
