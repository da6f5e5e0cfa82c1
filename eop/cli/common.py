"""Options that several commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import yaml

from eop.cli.completions import runs
from eop.core.errors import EopError, ExitCode
from eop.project.config import check_keys, read_raw, resolve
from eop.project.project import Project
from eop.protocol.compiler import load

if TYPE_CHECKING:
    from pathlib import Path

run_option = click.option(
    "--run",
    "run_name",
    shell_complete=runs,
    help="Name of the run.  [default: the config's, or the only one]",
)
config_option = click.option(
    "--config",
    "pairs",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a key of the workflow config; may be repeated.",
)


def overrides(pairs: tuple[str, ...]) -> dict[str, Any]:
    """Parse KEY=VALUE options; values are YAML scalars, an empty one is null."""
    values = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not separator:
            raise click.UsageError(f"--config needs KEY=VALUE, not '{pair}'")
        try:
            values[key] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise click.UsageError(f"--config {pair}: the value is not YAML: {error}") from error
    return values


def started_runs(root: Path) -> list[str]:
    """Names of the runs that have been started, sorted."""
    return sorted(path.parent.name for path in (root / "runs").glob("*/plan.json"))


def open_project(root: Path, run_name: str | None) -> Project:
    """The project of a run that has been started.

    Without a name: the config's run when it exists, else the only run there is. Raises
    ``EopError`` (EOP612) when that leaves none or several.
    """
    runs = started_runs(root)
    if run_name is None:
        raw = read_raw(root)
        check_keys(root, raw)
        plan = load(root / raw["protocol"], root=root)
        run_name = resolve(root, raw, plan).run
        if run_name not in runs and len(runs) == 1:
            run_name = runs[0]
    if run_name not in runs:
        known = ", ".join(runs) if runs else "none has been started"
        raise EopError(
            "EOP612",
            f"no run '{run_name}' in {root} (runs: {known})",
            hint="start one with `eop run`, or name one with --run",
            exit_code=ExitCode.STATE,
        )
    return Project.of_run(root, run_name)
