"""A run that waits at its first gate, and what a person sees there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from research_run import Run

if TYPE_CHECKING:
    from pathlib import Path

    from eop.runtime.answers import GateView
    from eop.runtime.signatures import Signers


def at_first_gate(root: Path, signers: Signers | None = None) -> Run:
    run = Run(root, signers=signers)
    run.do("it01_investigate")
    run.advance()
    return run


def view(run: Run) -> GateView:
    """The one gate that waits."""
    (found,) = run.advance().waiting
    return found


def problem(run: Run) -> str:
    """The one thing that is wrong with its answer."""
    (found,) = view(run).problems
    return found
