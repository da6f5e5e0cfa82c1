"""Let a run go on under a protocol that was changed while it was under way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eop.core.errors import EopError, ExitCode, Where
from eop.core.files import write_json
from eop.core.locks import LockHeldError, exclusive
from eop.driver.pinned import another_run
from eop.driver.start import require_all_events
from eop.driver.workflow import lock_project
from eop.project.project import Project
from eop.runtime.lifecycle import abandon
from eop.runtime.migration import differences, kept_plan, obstacles
from eop.runtime.node import Instance
from eop.runtime.trace import Trace

if TYPE_CHECKING:
    from eop.protocol.model import Plan


def migrate(project: Project, by: str, reason: str) -> list[str]:
    """Bring the run under the plan of ``project``; return in what it differs from the one before.

    Safe to be killed anywhere: the same call completes it. Raises ``EopError``: EOP810 while
    somebody drives the run, EOP714 when the end of its trace is missing, EOP717 when what has
    happened does not allow it.
    """
    with lock_project(project.root):
        begun = Project.of_run(project.root, project.run)
        require_all_events(begun, Trace(begun.trace_dir, begun.plan).events)
        if not _is_under(begun, project.plan):
            _change(begun, project.plan, by, reason)
        if begun.plan.digest == project.plan.digest:
            return []
        write_json(project.run_dir / "plan.json", project.plan.to_json())
        return differences(begun.plan, project.plan)


def _is_under(begun: Project, plan: Plan) -> bool:
    """Whether the trace says already that the run is under ``plan``."""
    named = [begun.plan.digest]
    for event in Trace(begun.trace_dir, begun.plan).events():
        if event.type == "plan_changed":
            named.append(str(event.data["to"]))
    return named[-1] == plan.digest


def _change(begun: Project, plan: Plan, by: str, reason: str) -> None:
    trace = Trace(begun.trace_dir, begun.plan)
    for key in trace.state().active:
        _abandon_if_dead(begun, trace, Instance.parse(key))
    against = obstacles(begun.plan, plan, trace.state(), trace.events())
    if against:
        raise EopError(
            "EOP717",
            f"run '{begun.run}' cannot go on under the changed protocol:\n  "
            + "\n  ".join(against),
            where=Where(begun.config.protocol),
            hint=f"restore what has happened already, or {another_run(begun)}",
            exit_code=ExitCode.STATE,
        )
    for kept in (begun.plan, plan):
        write_json(begun.run_dir / kept_plan(kept.digest), kept.to_json())
    trace.append(
        "plan_changed",
        {"from": begun.plan.digest, "to": plan.digest, "by": by, "reason": reason},
    )


def _abandon_if_dead(project: Project, trace: Trace, instance: Instance) -> None:
    """A node that is open though its lock is free belongs to a process that died."""
    try:
        with exclusive(project.run_dir / instance.directory / ".lock"):
            abandon(trace, instance, "its process died")
    except LockHeldError:
        return  # it is at work: an obstacle
