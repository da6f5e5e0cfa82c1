"""Where everything of a project lies. Nothing else builds these paths."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from eop.core.canonical import digest
from eop.core.errors import EopError, ExitCode, Where
from eop.core.files import read_json
from eop.project.config import OF_MACHINES, Config
from eop.protocol.model import Plan

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Project:
    """One run of one project. ``root`` is the project's folder, absolute."""

    root: Path
    config: Config
    plan: Plan

    @classmethod
    def of_run(cls, root: Path, run: str) -> Project:
        """Open a run that has been started; EOP610 when there is none of that name.

        EOP613 when its plan or its config is not of this version.
        """
        folder = root / "runs" / run
        if not (folder / "plan.json").is_file():
            raise EopError(
                "EOP610",
                f"no run '{run}' in {root / 'runs'}",
                hint="start it with `eop run`; `eop status` lists the runs",
                exit_code=ExitCode.STATE,
            )
        try:
            config = Config(**read_json(folder / "config.json"))
            return cls(root, config, Plan.from_json(read_json(folder / "plan.json")))
        except (TypeError, KeyError) as error:
            raise EopError(
                "EOP613",
                f"run '{run}' was begun by another version: {error}",
                where=Where(str(folder)),
                hint="go on with that version, or start another run: --config run=<name>",
                exit_code=ExitCode.STATE,
            ) from error

    @property
    def run(self) -> str:
        """Name of the run."""
        return self.config.run

    @property
    def run_dir(self) -> Path:
        """``runs/<run>``."""
        return self.root / "runs" / self.run

    @property
    def trace_dir(self) -> Path:
        """Folder of the event files."""
        return self.run_dir / "trace"

    @property
    def rules_dir(self) -> Path:
        """Folder of the compiled rules."""
        return self.run_dir / "rules"

    @property
    def split_dir(self) -> Path:
        """The data set's split files."""
        return self.root / "data" / "splits" / self.config.dataset

    @property
    def raw_dir(self) -> Path:
        """The data set as its owner ships it; may lie outside the project."""
        return self.root / self.config.data_dir

    @property
    def base_experiment(self) -> Path:
        """The run's own copy of the experiment config that it began with."""
        return self.run_dir / "base" / "experiment.yaml"

    @property
    def snapshot(self) -> Path:
        """The pinned tree that the run's patches apply to, a tar file."""
        facts = read_json(self.run_dir / "base" / "snapshot.json")
        return self.root / str(facts["path"])

    @property
    def playbook(self) -> Path:
        """What the product ``scripted`` plays."""
        return self.root / self.config.playbook

    @cached_property
    def config_digest(self) -> str:
        """Digest of what decides a run's results.

        What is about the person's machines is left out.
        """
        return digest({k: v for k, v in self.config.to_json().items() if k not in OF_MACHINES})

    def relative(self, path: Path) -> str:
        """``path`` as text relative to the root, as artifacts and Snakemake name it."""
        return path.relative_to(self.root).as_posix()
