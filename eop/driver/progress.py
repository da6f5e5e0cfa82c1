"""What the nodes at work do, read from the files that they leave: from any host, at any time."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from eop.core.errors import EopError
from eop.driver.agent import products
from eop.functions.training_progress import training_so_far
from eop.patterns.progress import Reader
from eop.runtime.node import Instance
from eop.runtime.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eop.agents.contract import Product
    from eop.functions.training_progress import TrainingProgress
    from eop.patterns.progress import PhaseProgress
    from eop.project.project import Project

    Progress = Mapping[str, PhaseProgress | TrainingProgress]


class Observer:
    """Looks at the nodes of a run that are at work, again and again; it writes nothing."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._trace = Trace.resumed(project.trace_dir, project.plan)
        self._reader = Reader()
        self._products: Mapping[str, Product] = {}
        # What an agent has done is not to be read without its adapter, which a machine that only
        # looks may lack.
        with suppress(EopError):
            self._products = products(project)

    def look(self) -> Progress:
        """How far each node is that shows anything, by key."""
        found = {}
        for key in self._trace.state().active:
            # What a node leaves may be half there, or go away meanwhile: then it shows nothing.
            with suppress(EopError, OSError):
                seen = self._of_node(Instance.parse(key))
                if seen is not None:
                    found[key] = seen
        return found

    def _of_node(self, at: Instance) -> PhaseProgress | TrainingProgress | None:
        project = self._project
        if project.plan.phase(at.step).function:
            return training_so_far(project, self._trace.state(), at, time.time())
        return self._reader.phase(project.run_dir / at.directory / "work", self._products)
