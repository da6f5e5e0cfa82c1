"""What a phase's work may build on: its project, its place in the run, earlier artifacts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from eop.core.errors import EopError, ExitCode
from eop.functions.artifacts import Artifacts
from eop.functions.recommender import Recommender
from eop.functions.trees import candidate_tree, snapshot_tree
from eop.runtime.node import Branch

if TYPE_CHECKING:
    from pathlib import Path

    from eop.agents.jail import Jail
    from eop.project.project import Project
    from eop.protocol.model import Phase
    from eop.runtime.node import Instance
    from eop.runtime.state import State

_DEFAULT_WALL_S = 3600.0


@dataclass(frozen=True)
class Context:
    """One node at work. ``state`` is the run as it was when the node was entered.

    ``processes`` train one model together: one for each GPU that the job holds, and never none.
    """

    project: Project
    phase: Phase
    instance: Instance
    state: State
    jail: Jail
    processes: int = 1

    @property
    def root(self) -> Path:
        """The project's folder."""
        return self.project.root

    @property
    def artifacts(self) -> Artifacts:
        """The run's committed artifacts."""
        return Artifacts(self.project, self.state)

    @property
    def branch(self) -> Branch | None:
        """The branch that it works in; ``None`` outside of any."""
        item, name = self.phase.branch, self.instance.branch
        return Branch(item, name) if item and name else None

    @property
    def directory(self) -> Path:
        """The node's folder."""
        return self.project.run_dir / self.instance.directory

    @property
    def work(self) -> Path:
        """The node's scratch folder; kept between attempts, so that finished parts are reused."""
        return self.directory / "work"

    @property
    def wall_s(self) -> float:
        """Time limit of the node's work, seconds."""
        return float(self.phase.budget.wall_s or _DEFAULT_WALL_S)

    def produced(self, function: str) -> Path:
        """The artifact of the phase that runs ``function``; a missing one is EOP721."""
        at = self.instance
        path = self.artifacts.of_function(function, at.iteration, self.branch)
        if path is None:
            raise EopError(
                "EOP721",
                f"{at.key} needs what '{function}' leaves, and nothing has left it",
                hint="the protocol's `needs` must lead from the one to the other",
                exit_code=ExitCode.STATE,
            )
        return path

    def patch(self) -> Path | None:
        """The branch's patch; ``None`` outside a branch and when it changes no code."""
        branch = self.branch
        return self.artifacts.patch(self.instance.iteration, branch) if branch else None

    def experiment(self) -> Path:
        """The branch's experiment config; the run's base config outside any branch."""
        branch = self.branch
        own = self.artifacts.experiment(self.instance.iteration, branch) if branch else None
        return own or self.project.base_experiment

    def recommender(self) -> Recommender:
        """The branch's tree at work (outside a branch the snapshot), judged by the snapshot."""
        return Recommender(
            tree=candidate_tree(self.project, self.patch()),
            pristine=snapshot_tree(self.project),
            split=self.project.split_dir,
            scratch=self.work,
            jail=self.jail,
            threads=self.project.config.threads,
            timeout_s=self.wall_s,
            processes=self.processes,
            own_settings=self.experiment() != self.project.base_experiment,
        )
