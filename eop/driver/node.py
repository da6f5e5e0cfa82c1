"""Run one node: in through the state machine, the phase's work, out with a typed outcome."""

from __future__ import annotations

import shutil
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from eop.agents.jail import choose
from eop.core.errors import EopError, ExitCode
from eop.core.files import write_bytes, write_json
from eop.core.locks import exclusive
from eop.driver.gpus import held
from eop.driver.pinned import require_pins
from eop.functions.context import Context
from eop.functions.recommender import CandidateError
from eop.functions.registry import function
from eop.project.project import Project
from eop.runtime.gates import APPROVED, SKIPPED
from eop.runtime.lifecycle import outcome, perform
from eop.runtime.node import Instance, NodeResult, Outcome, Usage
from eop.runtime.trace import Trace

if TYPE_CHECKING:
    from pathlib import Path

    from eop.runtime.lifecycle import Entered

# What a function spends of what agents spend.
_NO_AGENT = Usage(actions=0, tokens=0, micro_usd=0)


def run_node(root: Path, run: str, key: str) -> None:
    """Bring the node ``key`` to its final outcome and write its ``outcome.json``.

    A node that has left already is adopted: its outcome is written again from the trace and its
    work is not repeated. While another process works on the node (the orphan of a killed run),
    this one waits and then adopts. Raises ``EopError`` when the state machine refuses the node, or
    what the run has pinned was edited (EOP712).
    """
    project = Project.of_run(root, run)
    trace = Trace.resumed(project.trace_dir, project.plan)
    instance = Instance.parse(key)
    folder = project.run_dir / instance.directory
    require_pins(project, trace.state())
    with exclusive(folder / ".lock", wait=True):
        document = perform(
            trace, root, project.plan, instance, lambda entered: _work(project, instance, entered)
        )
        write_json(folder / "outcome.json", document)


def record_gate(root: Path, run: str, key: str) -> None:
    """Write the audit record of a gate; EOP722 unless the trace says that it holds nothing back."""
    project = Project.of_run(root, run)
    state = Trace(project.trace_dir, project.plan).state()
    instance = Instance.parse(key)
    gate = state.gate(instance)
    if gate is None or gate.status not in (APPROVED, SKIPPED):
        raise EopError(
            "EOP722",
            f"gate {key} is not approved",
            hint=f"`eop gate list --run {run}` says what to read and what to touch",
            exit_code=ExitCode.STATE,
        )
    write_json(project.run_dir / instance.directory / "outcome.json", outcome(state, instance))


def _work(project: Project, instance: Instance, entered: Entered) -> NodeResult:
    phase = project.plan.phase(instance.step)
    jail = choose(project.config.isolation, trusted=True)
    context = Context(project, phase, instance, entered.state, jail)
    # What an attempt left that was killed is no artifact of this one; it may be half written.
    if (context.directory / "artifacts").exists():
        shutil.rmtree(context.directory / "artifacts")
    started = time.monotonic()
    with held(project.root / "runs" / ".gpus", phase.id, phase.resources.gpus) as gpus:
        context = replace(context, processes=max(1, gpus))
        result = _call(context) if phase.function else _ask(context)
    usage = result.usage._replace(wall_s=time.monotonic() - started)
    return replace(result, usage=usage)


def _ask(context: Context) -> NodeResult:
    """Run a phase of agents."""
    # A job pays for what it uses: a function needs neither the products nor the patterns.
    from eop.driver.agent import run_agents

    return run_agents(context)


def _call(context: Context) -> NodeResult:
    """Run a function; a failure of the candidate is an outcome, any other error is not caught."""
    assert context.phase.function is not None
    output = context.phase.outputs[0]
    try:
        report = function(context.phase.function)(context)
    except CandidateError as error:
        status = Outcome.TIMED_OUT if error.timed_out else Outcome.FAILED
        evidence = {output.name: _kept(context, error.report)} if error.report else {}
        return NodeResult(status, str(error), evidence, _NO_AGENT)
    return NodeResult(Outcome.COMPLETED, "", {output.name: _kept(context, report)}, _NO_AGENT)


def _kept(context: Context, report: Path) -> Path:
    """A copy of what a function left, at the place that artifacts are committed from."""
    target = context.directory / "artifacts" / context.phase.outputs[0].file
    write_bytes(target, report.read_bytes())
    return target
