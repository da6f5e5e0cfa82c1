"""How a phase works: chains and review loops of agent nodes, each committed at its boundary."""

from eop.patterns.execute import run
from eop.patterns.task import Task

__all__ = ["Task", "run"]
