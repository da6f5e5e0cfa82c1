"""Find committed artifacts by what they are for, and refuse those that have changed since."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eop.core.canonical import digest
from eop.core.files import read_json, write_if_changed
from eop.runtime.artifacts import check

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from eop.project.project import Project
    from eop.protocol.model import Output
    from eop.runtime.node import Branch
    from eop.runtime.state import State

EXPERIMENT_FILE = "experiment.yaml"


@dataclass(frozen=True)
class Artifacts:
    """The artifacts of a run as they stood at ``state``."""

    project: Project
    state: State

    def named(self, name: str, iteration: int, branch: Branch | None = None) -> Path | None:
        """An artifact's file as a step of this iteration and branch sees it, ``None`` without one.

        Raises ``EopError`` (EOP734) when the file is not what was committed.
        """
        found = self.state.artifact(self.project.plan, name, iteration, branch)
        if found is None:
            return None
        check(self.project.root, [found])
        return self.project.root / found.path

    def of_function(
        self, function: str, iteration: int, branch: Branch | None = None
    ) -> Path | None:
        """The one artifact of the phase that runs ``function``."""
        for phase in self.project.plan.phases:
            if phase.function == function:
                return self.named(phase.outputs[0].name, iteration, branch)
        return None

    def of_schema(self, schema: str, iteration: int) -> list[Path]:
        """All artifacts of a schema that are left outside of branches, in the protocol's order."""
        names = [
            output.name
            for phase in self.project.plan.phases
            for output in phase.outputs
            if output.schema == schema and not phase.branch
        ]
        paths = (self.named(name, iteration) for name in names)
        return [path for path in paths if path is not None]

    def patch(self, iteration: int, branch: Branch) -> Path | None:
        """A branch's patch against the pinned snapshot; ``None`` when it changes no code.

        A recipe's own stands in the list that opened the branch.
        """
        if self.project.plan.runs("compose"):
            return self._of_recipe(self.proposal(iteration, branch))
        path = self._of_branch(lambda output: output.patch, iteration, branch)
        return path if path and path.stat().st_size else None

    def _of_recipe(self, item: dict[str, Any]) -> Path | None:
        text = item.get("patch")
        if text is None:
            return None
        path = self.project.run_dir / "recipes" / f"{digest(text)[:16]}.diff"
        write_if_changed(path, text)
        return path

    def experiment(self, iteration: int, branch: Branch) -> Path | None:
        """A branch's experiment config."""
        return self._of_branch(lambda output: output.file == EXPERIMENT_FILE, iteration, branch)

    def proposal(self, iteration: int, branch: Branch) -> dict[str, Any]:
        """The item of the list artifact that opened ``branch``."""
        fan_out = self.project.plan.fan_out(branch.item)
        path = self.named(fan_out.artifact, iteration)
        assert path is not None, "branches are opened from a committed artifact"
        item: dict[str, Any] = read_json(path)[int(branch.name[1:]) - 1]
        return item

    def _of_branch(
        self, wanted: Callable[[Output], bool], iteration: int, branch: Branch
    ) -> Path | None:
        for phase in self.project.plan.members(branch.item):
            for output in phase.outputs:
                if wanted(output):
                    return self.named(output.name, iteration, branch)
        return None
