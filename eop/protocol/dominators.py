"""Which gates dominate a step: it cannot run unless they were approved, whatever else happens.

A step waits for all of its needs, so what comes after a gate is held by it, with three ways round:
an optional phase lets others go on when it never ran, a guard may leave a gate unasked, and a join
may fire though phases of its branches did not run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eop.protocol.model import Gate, Phase

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from eop.protocol.draft import Draft
    from eop.protocol.graph import Graph

Gates = frozenset[str]


def dominating_gates(draft: Draft, graph: Graph) -> dict[str, Gates]:
    """For each step the gates that it cannot run without, itself among them if it is one."""
    steps: dict[str, Phase | Gate] = {step.value.id: step.value for step in draft.steps}
    analysis = Dominators(steps, graph.requires)
    on_cycles = {step for cycle in graph.cycles() for step in cycle}
    tangled = graph.below(on_cycles)
    return {name: Gates() if name in tangled else analysis.of(name) for name in steps}


class Dominators:
    """The analysis over acyclic ``steps``, of which ``requires`` says what each waits for."""

    def __init__(
        self, steps: Mapping[str, Phase | Gate], requires: Mapping[str, Iterable[str]]
    ) -> None:
        self._steps = steps
        self._requires = {name: [r for r in requires[name] if r in steps] for name in steps}
        phases = [step for step in steps.values() if isinstance(step, Phase)]
        self._producers = {output.name: phase.id for phase in phases for output in phase.outputs}
        self._heads = {phase.fan_out.item: phase.id for phase in phases[::-1] if phase.fan_out}

    def of(self, name: str) -> Gates:
        """Gates that were approved for sure when a phase runs, or a gate is approved."""
        done, over = {name}, {name}
        before = 0
        while before < len(done) + len(over):
            before = len(done) + len(over)
            for step in list(done):
                for required in self._requires[step]:
                    (done if self._carries(step, required) else over).add(required)
            over |= done
            over |= {required for step in over for required in self._requires[step]}
            for item in {self._branch(step) for step in over} & self._heads.keys():
                done |= {r for r in self._requires[self._heads[item]] if self._firm(r)}
            done |= {step for step in over if self._firm(step) and not self._skips(step, done)}
        return Gates(step for step in done if isinstance(self._steps[step], Gate))

    def _branch(self, name: str) -> str:
        return getattr(self._steps[name], "branch", None) or ""

    def _firm(self, name: str) -> bool:
        """Whether the run ends when ``name`` fails: a gate, a phase that all others wait for."""
        step = self._steps[name]
        return isinstance(step, Gate) or not (step.optional or step.branch)

    def _carries(self, name: str, required: str) -> bool:
        """Whether ``required`` has completed or was approved for sure when ``name`` runs."""
        step, before = self._steps[name], self._steps[required]
        if isinstance(before, Gate) or not before.branch:
            return self._firm(required)
        if isinstance(step, Phase) and step.join:
            return step.join.at_least > 0 and _decides(before)
        return isinstance(step, Phase) and step.on_branch == ("completed",) and not before.optional

    def _skips(self, name: str, done: set[str]) -> bool:
        """Whether a guard may leave ``name`` out, although all of ``done`` was done."""
        if name in done:
            return False
        step = self._steps[name]
        if isinstance(step, Phase) and step.when is not None:
            return True
        shown = step.shows if isinstance(step, Gate) else ()
        missing = {self._producers[artifact] for artifact in shown if artifact in self._producers}
        missing |= {
            r for r in self._requires[name] if not getattr(self._steps[r], "optional", False)
        }
        return any(self._skips(required, done) for required in missing)


def _decides(phase: Phase) -> bool:
    """Whether a branch counts as completed only if this phase of it has completed."""
    return not phase.optional and "failed" not in phase.on_branch
