"""`eop`: the command line. Every command has an example in its --help."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import NoReturn

import click

from eop.cli.champion import champion
from eop.cli.compare import compare_runs
from eop.cli.control import cancel, pause, resume
from eop.cli.doctor import doctor
from eop.cli.evidence import evidence
from eop.cli.explain import explain
from eop.cli.gate import gate
from eop.cli.graph import graph
from eop.cli.inspect import status, verify
from eop.cli.knowledge import knowledge
from eop.cli.leaderboard import leaderboard
from eop.cli.migrate import migrate
from eop.cli.plot import plot
from eop.cli.protocol import check, compile_
from eop.cli.report import report
from eop.cli.run import demo, init, reproduce, run
from eop.cli.store import store
from eop.core.errors import EopError, ExitCode, Where

# A disk, a quota or a device that takes no more.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="rankevolve", prog_name="eop")
@click.option(
    "--project",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=".",
    help="Top folder of the project.  [default: the current folder]",
)
@click.pass_context
def cli(context: click.Context, project: Path) -> None:
    """Evolve a ranking model by auto-research that you can trust.

    \b
    Exit status: 0 done · 2 usage · 3 a gate waits for you · 4 protocol · 5 config
                 6 data · 7 state · 8 another run is active · 9 environment · 1 anything else
    """  # noqa: D301 - \b is click's mark for text that keeps its lines
    context.obj = project.resolve()


for command in (
    *(init, check, explain, graph, compile_, run, pause, resume, cancel, migrate),
    *(status, report, gate, verify, leaderboard, plot, compare_runs, champion, evidence),
    *(knowledge, reproduce, store, demo, doctor),
):
    cli.add_command(command)


def main() -> None:
    """Run the command line; an ``EopError`` becomes its message and its exit status."""
    try:
        cli()
    except EopError as error:
        _end(error)
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        _drop_unwritten()
        _end(_full(error))


def _end(error: EopError) -> NoReturn:
    click.echo(str(error), err=True)
    sys.exit(int(error.exit_code))


def _drop_unwritten() -> None:
    """Python writes what standard output still holds when it ends, and would fail once more."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _full(error: OSError) -> EopError:
    # A stream has no name: only the person knows where it goes.
    return EopError(
        "EOP891",
        f"cannot write: {error.strerror}",
        where=Where(str(error.filename or "standard output, or a file of the project")),
        hint="make room there, then give the command once more",
        exit_code=ExitCode.ENVIRONMENT,
    )
