"""What ``snakemake --report`` shows of a run's steps, and under which headings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from eop.protocol.model import Phase
from eop.runtime.gates import SKIPPED
from eop.runtime.node import Instance

if TYPE_CHECKING:
    from eop.protocol.model import Plan
    from eop.runtime.state import State

CAPTIONS = "rules/captions"
_TITLE = 60  # letters: Snakemake's page makes its menu as wide as the longest heading
# A title is text of others: Snakemake writes it into a script and takes braces for wildcards.
_MEANING = str.maketrans(
    "<>{}&",
    "\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}"
    "\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}()+",
)


@dataclass(frozen=True)
class Result:
    """A file's place in the report: two headings, its line there, and what explains it.

    Of several labels Snakemake's page may make a switch that hides rows, so that there is one.
    ``caption`` is a file's name in ``rules/captions``.
    """

    category: str
    subcategory: str
    label: str
    caption: str

    def flag(self, captions: str) -> dict[str, object]:
        """Arguments of Snakemake's ``report``; ``captions`` is the way to their folder."""
        return {
            "caption": f"{captions}/{self.caption}",
            "category": self.category,
            "subcategory": self.subcategory,
            "labels": {"result": self.label},
        }


def of_step(plan: Plan, state: State, instance: Instance) -> Result:
    """A step's or gate's outcome: of a branch under its title, else among the steps or gates."""
    gate = state.gate(instance)
    node = state.node(instance)
    ended = gate.status if gate else node.status if node else "not yet"
    again = f" r{instance.revision}" if instance.revision > 1 else ""
    label = f"{_place(plan, instance.step):02d} {instance.step}{again}: {ended}".replace("_", " ")
    if gate or instance.step in {one.id for one in plan.gates}:
        heading, caption = "Gates", "gate.rst"
    else:
        heading, caption = _branch(plan, state, instance) or "Steps", "step.rst"
    return Result(iteration_heading(plan, instance.iteration), heading, label, caption)


def left_or_open(state: State) -> list[Instance]:
    """All nodes that were ever entered or skipped, and all gates that were answered or skipped."""
    answered = (key for key, gate in state.gates.items() if gate.by or gate.status == SKIPPED)
    return list(map(Instance.parse, (*state.nodes, *answered)))


def of_page(plan: Plan, iteration: int) -> Result:
    """The page of an iteration."""
    heading = iteration_heading(plan, iteration)
    return Result(heading, "Overview", "rows, steps and gates", "iteration.rst")


def of_whole() -> Result:
    """The page of a run that has published nothing; else a rule makes it."""
    return Result("All iterations", "Overview", "the page of the run", "whole.rst")


def iteration_heading(plan: Plan, iteration: int) -> str:
    """``Iteration 2``; numbers are as long as the longest may be, since headings are sorted."""
    digits = len(str(plan.loop.max)) if plan.loop else 1
    return f"Iteration {iteration:0{digits}d}"


def _place(plan: Plan, step: str) -> int:
    """Where a step stands in the protocol, from 1; 0 for one of an earlier version of it."""
    steps = list(plan.steps)
    return steps.index(step) + 1 if step in steps else 0


def _branch(plan: Plan, state: State, instance: Instance) -> str | None:
    """``p01: its title``, harmless in a script and in a path with wildcards."""
    if instance.branch is None:
        return None
    step = plan.steps.get(instance.step)
    item = step.branch if isinstance(step, Phase) else None
    titles = state.branches.get((instance.iteration, item), {}) if item else {}
    title = titles.get(instance.branch, "").translate(_MEANING)
    if len(title) > _TITLE:
        title = title[: _TITLE - 1] + "\N{HORIZONTAL ELLIPSIS}"
    return f"{instance.branch}: {title}" if title else instance.branch
