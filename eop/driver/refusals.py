"""What Snakemake says of jobs that a halted run refuses: a line each, in the place of errors."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from snakemake.logging import logger
from snakemake_interface_logger_plugins.common import LogEvent

from eop.core.errors import EopError, ExitCode
from eop.runtime.node import Instance
from eop.runtime.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eop.project.project import Project
    from eop.runtime.state import State

_REFUSED = f"returned non-zero exit status {int(ExitCode.GATE_CLOSED)}."
_ENDS = "Exiting because a job execution failed"


class Refusals(logging.Filter):
    """For Snakemake's log: a person pauses a run while it works, and its next jobs may not begin.

    For Snakemake they have failed. Nothing has: what was at work is kept, and the rest comes after.
    """

    def __init__(self, project: Project) -> None:
        super().__init__()
        self._project = project
        self._refused = False
        self._failed = False
        # Of groups that were cut short those jobs that had done their work.
        self._left: set[str] = set()

    @property
    def are_all(self) -> bool:
        """Whether jobs were refused, and no other job has failed."""
        return self._refused and not self._failed

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is to be shown."""
        if record.levelno < logging.ERROR:
            return True
        event = getattr(record, "event", None)
        if event == LogEvent.JOB_ERROR:
            name = str(getattr(record, "rule_name", ""))
            return name not in self._left and not self._is_refused(name)
        if event == LogEvent.GROUP_ERROR:
            jobs: list[dict[str, Any]] = getattr(record, "job_error_info", [])
            return not self._is_cut_short([str(job["rule_name"]) for job in jobs])
        text = record.getMessage()
        if _REFUSED in text:
            return self._halted() is None
        return not (text.startswith(_ENDS) and self.are_all)

    def _is_cut_short(self, names: Sequence[str]) -> bool:
        """Whether the jobs of a group were refused, from one on; a record of each comes after this.

        For Snakemake all of them have failed, and those too that had left before.
        """
        state = self._halted()
        left = {name for name in names if state is not None and _has_left(state, name)}
        others = [name for name in names if name not in left]
        if not others or not all(map(self._refuses, others)):
            return False
        self._left |= left
        return True

    def _is_refused(self, name: str) -> bool:
        halt = self._refuses(name)
        if halt is None:
            self._failed = True
            return False
        self._refused = True
        logger.warning(f"{name} has not begun: {halt}")
        return True

    def _refuses(self, name: str) -> str | None:
        """Why the node of this name may not begin; ``None`` when it has, or is no node."""
        state = self._halted()
        try:
            step = Instance.parse(name).step
        except ValueError:
            return None
        if state is None or step not in {phase.id for phase in self._project.plan.phases}:
            return None
        return None if name in state.active or _has_left(state, name) else str(state.halt)

    def _halted(self) -> State | None:
        """The state of the run, if somebody has halted it."""
        try:
            state = Trace.resumed(self._project.trace_dir, self._project.plan).state()
        except EopError:
            # It is told elsewhere, with all that there is to say about it.
            return None
        return state if state.halt else None


def _has_left(state: State, name: str) -> bool:
    node = state.nodes.get(name)
    return node is not None and node.final
