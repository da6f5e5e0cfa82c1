"""What the Snakefile needs: compile in the main process, include elsewhere, guard, announce."""

from __future__ import annotations

import shutil
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from snakemake.logging import logger

from eop.compile.run import compile_run
from eop.core.canonical import tree_digest
from eop.core.errors import EopError, ExitCode
from eop.core.files import write_if_changed
from eop.core.locks import LockHeldError, acquire
from eop.driver.agent import products
from eop.driver.announce import closing_lines, onward_lines
from eop.driver.gpus import share
from eop.driver.refusals import Refusals
from eop.driver.results import asked_for, begun, shown, standing
from eop.driver.start import open_run
from eop.functions.split import require_data
from eop.project.config import check_keys, resolve
from eop.project.prices import unpriced
from eop.project.project import Project
from eop.protocol.compiler import load
from eop.runtime.advance import advance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from eop.driver.results import Pages
    from eop.runtime.advance import Position
    from eop.runtime.frontier import Frontier
    from eop.runtime.state import State


@dataclass(frozen=True)
class Flow:
    """An opened project, as the Snakefile sees it. ``lock`` is held until the process ends.

    ``opened_at`` is the number of the last event before any job of this call; ``refusals`` are
    those of jobs that a person halts meanwhile. A flow that is ``reporting`` runs nothing and
    leaves the run as it is.
    """

    project: Project
    lock: IO[str] | None
    opened_at: int = 0
    refusals: Refusals | None = None
    reporting: bool = False

    @property
    def compiled(self) -> list[str]:
        """The generated files to include, in order; paths are absolute."""
        return [str(path) for path in sorted(self.project.rules_dir.glob("*.smk"))]

    @property
    def code(self) -> str:
        """Digest of the working tree's ``hstu/``: what the rules by hand run."""
        folder = self.project.root / "hstu"
        return tree_digest(folder, sorted(folder.rglob("*.py")))[:16]

    def targets(self, workflow: Any, targets: list[str], write_pages: Pages) -> list[str]:
        """What ``rule all`` asks for; in a report only what is there, and what no rule makes.

        ``write_pages`` writes the pages that the report shows.
        """
        if self.reporting:
            return [*self.there(targets), *shown(self.project, write_pages)]
        self.guard(workflow)
        return targets

    def there(self, paths: Iterable[str]) -> list[str]:
        """The paths; in a report those that are there, for it fails where one is not."""
        root = self.project.root
        return [path for path in paths if not self.reporting or (root / path).is_file()]

    def guard(self, workflow: Any) -> None:
        """Refuse what cannot go well, before any job starts.

        That is: flags that would make Snakemake forget what has happened, an agent product that
        is not ready, a data set that is not there, more GPUs in a phase than this machine has.
        """
        dag, execution = workflow.dag_settings, workflow.execution_settings
        used = {
            "--forceall": dag.forceall,
            "-R/--forcerun": bool(dag.forcerun),
            "--touch": workflow.touch,
            "--nolock": execution is not None and not execution.lock,
            "--ignore-incomplete": execution is not None and execution.ignore_incomplete,
        }
        refused = [flag for flag, on in used.items() if on]
        with _or_exit():
            if refused and not self.project.config.allow_unsafe:
                raise EopError(
                    "EOP811",
                    f"refused: {', '.join(refused)} would redo or bless finished work",
                    hint="the trace decides what is finished; if you are sure, add --config "
                    "allow_unsafe=1",
                    exit_code=ExitCode.USAGE,
                )
            _require_git()
            share(workflow, self.project.plan)
            products(self.project)
            require_data(self.project)

    def close(self, write_page: Callable[[Path, str], object]) -> None:
        """After the last job: record what the frontier now waits for, and say it.

        ``write_page`` makes the page of the run that it is given: one that a job made does not
        know how this call ended.
        """
        if self.lock is not None:
            with _or_exit():
                position = advance_and_compile(self.project)
                _announce(self.project, position)
                for line in onward_lines(self.project, position):
                    logger.warning(line)
                moved = position.state.seq > self.opened_at
                if moved and (self.project.run_dir / "report.html").is_file():
                    write_page(self.project.root, self.project.run)
            if self.refusals is not None and self.refusals.are_all:
                # As at a gate: what could run has run. Snakemake would end as if a job had failed.
                sys.exit(int(ExitCode.OK))


def open_flow(workflow: Any, raw: Mapping[str, Any]) -> Flow:
    """Check the config and the protocol; in the main process also lock, advance and compile."""
    root = Path.cwd()
    with _or_exit():
        project = load_project(root, raw)
        if workflow.exec_mode != workflow.exec_mode.DEFAULT:
            return Flow(project, None)
        lock = lock_project(root)
        if asked_for(sys.argv):
            project = begun(project)
            _write_rules(project, *standing(project))
            return Flow(project, lock, reporting=True)
        position = advance_and_compile(project)
        _announce(project, position)
        refusals = Refusals(project)
        logger.addFilter(refusals)
        return Flow(project, lock, position.state.seq, refusals)


def load_project(root: Path, raw: Mapping[str, Any]) -> Project:
    """Resolve a raw workflow config and compile its protocol."""
    check_keys(root, raw)
    plan = load(root / raw["protocol"], root=root, unpriced=unpriced(root, raw))
    return Project(root, resolve(root, raw, plan), plan)


def lock_project(root: Path) -> IO[str]:
    """Take the project's run lock and clear what a killed Snakemake left behind.

    The kernel frees the lock when its holder dies, so whoever holds it knows that Snakemake's own
    lock files are leftovers. Raises ``EopError`` (EOP810) while another process holds it.
    """
    try:
        lock = acquire(root / "runs" / ".lock")
    except LockHeldError as error:
        raise EopError(
            "EOP810",
            f"another run is active in {root} ({error})",
            hint="wait for it to end, or end it; `eop status` shows what it does",
            exit_code=ExitCode.LOCKED,
        ) from None
    for leftover in (root / ".snakemake" / "locks").glob("*.lock"):
        leftover.unlink(missing_ok=True)
    return lock


def advance_and_compile(project: Project) -> Position:
    """Turn what people and jobs left into events, then write the rules of the new frontier.

    The events of iterations that are over are packed.
    """
    trace = open_run(project)
    position = advance(project.root, project.run, project.plan, trace)
    trace.compact()
    trace.save()
    _write_rules(project, position.state, position.frontier)
    return position


def _write_rules(project: Project, state: State, frontier: Frontier) -> None:
    compiled = compile_run(project, state, frontier)
    for path, text in compiled.files.items():
        write_if_changed(path, text)
    for path in project.rules_dir.glob("*.smk"):
        if path not in compiled.files:
            path.unlink()


def _announce(project: Project, position: Position) -> None:
    for line in closing_lines(project, position):
        logger.warning(line)


def _require_git() -> None:
    if shutil.which("git") is None:
        raise EopError(
            "EOP812",
            "git is not on the PATH; patches are made and applied with it",
            hint="install git, then run the same command again",
            exit_code=ExitCode.ENVIRONMENT,
        )


@contextmanager
def _or_exit() -> Iterator[None]:
    """End Snakemake with an ``EopError``'s message and status.

    Raised as Snakemake's own error it would come with a traceback of ours and status 1.
    """
    try:
        yield
    except EopError as error:
        print(error, file=sys.stderr)
        sys.exit(int(error.exit_code))
