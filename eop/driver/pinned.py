"""What a run pinned when it began: jobs read these copies, and the trace knows their digests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eop.core.canonical import file_digest
from eop.core.errors import EopError, ExitCode, Where

if TYPE_CHECKING:
    from pathlib import Path

    from eop.project.project import Project
    from eop.runtime.state import State


def changed_pins(project: Project, state: State) -> list[Path]:
    """The pinned files that are missing or are not those which the run began with."""
    copies = [(project.base_experiment, state.experiment), (project.snapshot, state.snapshot)]
    changed = [path for path, known in copies if known is not None and _digest(path) != known]
    if project.config_digest != state.config:
        changed.insert(0, project.run_dir / "config.json")
    return changed


def require_pins(project: Project, state: State) -> None:
    """Raise ``EopError`` (EOP712) unless every pinned file is the one that the run began with."""
    for path in changed_pins(project, state):
        raise EopError(
            "EOP712",
            "the run's own copy is missing, or is not the one that it began with",
            where=Where(project.relative(path)),
            hint=f"restore the file, or {another_run(project)}",
            exit_code=ExitCode.STATE,
        )


def another_run(project: Project) -> str:
    """The way out for whoever will not go on with what the run began with."""
    return f"start another run: --config run={project.run}-2"


def _digest(path: Path) -> str | None:
    return file_digest(path) if path.is_file() else None
