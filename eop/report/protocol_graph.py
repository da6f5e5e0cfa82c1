"""A protocol as a picture, and how far a run has come in it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eop.compile.graph import mermaid
from eop.compile.layout import layout
from eop.report.scripts import ASSETS
from eop.report.templating import environment
from eop.report.view import GateView
from eop.report.words import kind, word

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eop.protocol.model import Plan
    from eop.report.view import RunView

# What is least settled stands for a step that runs in several branches.
_ORDER = ("warn", "calm", "bad", "good", "")


@dataclass(frozen=True)
class StepMark:
    """How a step stands in the newest iteration that has it: a class of the style, and in words."""

    kind: str
    said: str
    iteration: int


def step_marks(view: RunView) -> dict[str, StepMark]:
    """How each step of a run stands, by name."""
    found: dict[str, StepMark] = {}
    for turn in view.iterations:
        by_step: dict[str, Counter[str]] = {}
        for step in turn.steps:
            # A gate has a row for every revision that was asked: the newest one stands.
            counted = by_step.setdefault(step.step, Counter())
            if isinstance(step, GateView):
                counted.clear()
            counted[step.status] += 1
        found |= {name: _mark(counted, turn.number) for name, counted in by_step.items()}
    return found


def graph_mermaid(plan: Plan, view: RunView | None = None) -> str:
    """Mermaid text, in colour where a run has come."""
    marks = step_marks(view) if view else {}
    return mermaid(plan, {name: mark.kind for name, mark in marks.items()})


def graph_svg(plan: Plan, view: RunView | None = None) -> str:
    """A picture for itself: its style is in it, light or dark as its reader's system is."""
    return (
        environment()
        .get_template("protocol.svg")
        .render(
            plan=plan,
            layout=layout(plan),
            marks=step_marks(view) if view else {},
            style=(ASSETS / "protocol.css").read_text(),
            colours=(ASSETS / "colours.css").read_text(),
        )
    )


def _mark(counted: Mapping[str, int], iteration: int) -> StepMark:
    kinds = {kind(status) for status in counted}
    if sum(counted.values()) == 1:
        said = word(next(iter(counted)))
    else:
        said = ", ".join(f"{count} {word(status)}" for status, count in sorted(counted.items()))
    return StepMark(next(k for k in _ORDER if k in kinds), said, iteration)
