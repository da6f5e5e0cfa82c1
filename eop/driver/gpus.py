"""GPUs of a machine: which there are, and which of them a job has to itself."""

from __future__ import annotations

import os
import shutil
import socket
import time
from contextlib import ExitStack, contextmanager
from itertools import takewhile
from typing import IO, TYPE_CHECKING, Any

from eop.core.errors import EopError, ExitCode
from eop.core.locks import LockHeldError, acquire, exclusive
from eop.driver.asking import said

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from eop.protocol.model import Plan

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


def require(phase: str, wanted: int, there: int) -> None:
    """Raise ``EopError`` (EOP813) where a phase would wait for ever for so many GPUs.

    A machine without any is no fault: there it computes on its cores.
    """
    if 0 < there < wanted:
        raise EopError(
            "EOP813",
            f"phase '{phase}' asks for {wanted} GPUs, and {there} may be used here",
            hint=f"write `resources: {{gpus: {there}}}`, or show it more ({VISIBLE}, --resources "
            "gpu=N), or use a cluster's profile",
            exit_code=ExitCode.ENVIRONMENT,
        )


def share(workflow: Any, plan: Plan) -> None:
    """Have Snakemake start no more jobs at once than this machine has GPUs for.

    ``--resources gpu=N`` says how many, where somebody gives it. Raises ``EopError`` (EOP813) when
    a phase asks for more. On a cluster the scheduler knows, and a dry run cannot know which it is.
    """
    here = workflow.local_exec and not workflow.dryrun
    there = len(devices(os.environ)) if here else 0
    if not there:
        return
    if "gpu" not in workflow.global_resources:
        workflow.register_resource("gpu", there)
    allowed = workflow.global_resources["gpu"].value
    for phase in plan.phases:
        require(phase.id, phase.resources.gpus, min(there, allowed))


@contextmanager
def held(folder: Path, phase: str, wanted: int) -> Iterator[int]:
    """Have ``wanted`` GPUs to oneself for the length of a block: children see no other.

    Yields how many: none on a machine without. Waits until so many are free; locks lie in
    ``folder``. A scheduler has done all that, unless the job that it made is of several phases
    side by side, and sees the GPUs of them all. Raises ``EopError`` (EOP813) where there are fewer.
    """
    there = devices(os.environ) if wanted else []
    require(phase, wanted, len(there))
    if not there or (_scheduled() and len(there) == wanted):
        yield len(there)
        return
    before = os.environ.get(VISIBLE)
    with ExitStack() as stack:
        os.environ[VISIBLE] = ",".join(_taken(folder, there, wanted, stack))
        try:
            yield wanted
        finally:
            del os.environ[VISIBLE]
            if before is not None:
                os.environ[VISIBLE] = before


def _scheduled() -> bool:
    return any(name in os.environ for name in _SCHEDULERS)


def _taken(folder: Path, there: list[str], wanted: int, stack: ExitStack) -> list[str]:
    """So many of the GPUs, their locks on the stack. Who gets too few gives them back and waits."""
    # Each job of a scheduler counts its own from 0.
    host = "-".join(filter(None, (socket.gethostname(), os.environ.get("SLURM_JOB_ID"))))
    while True:
        locks: dict[str, IO[str]] = {}
        # One after the other: two that each took a part would both go away empty.
        with exclusive(folder / f"{host}.lock", wait=True):
            for name in there:
                try:
                    locks[name] = acquire(folder / f"{host}-{name}.lock")
                except LockHeldError:
                    continue
                if len(locks) == wanted:
                    for lock in locks.values():
                        stack.enter_context(lock)
                    return list(locks)
            for lock in locks.values():
                lock.close()
        time.sleep(_POLL_S)
