"""`eop`: the command line. Every command has an example in its --help."""

from __future__ import annotations

import errno
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import click
from click.shell_completion import CompletionItem

from eop.cli.output import error_json, print_json, usage_json
from eop.core.errors import EopError, ExitCode, Where, did_you_mean

# A disk, a quota or a device that takes no more.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


# Name to module and object, and the line of help. A command is imported when it is called.
_COMMANDS = {
    "cancel": ("control:cancel", "End a run for good."),
    "champion": ("champion:champion", "Who leads a run, and its way to another data set."),
    "check": ("protocol:check", "Check protocols: all errors at once, each with a hint."),
    "compare-runs": (
        "compare:compare_runs",
        "What two runs came to, what they spent, which is better.",
    ),
    "compile": ("protocol:compile_", "Write the rules that may run now, run nothing."),
    "completion": ("completion:completion", "Print what makes a shell complete `eop`."),
    "demo": ("run:demo", "Run the demo protocol, answering its gates for you."),
    "doctor": ("doctor:doctor", "Whether this machine has what the project needs."),
    "evidence": ("evidence:evidence", "Every file that a row rests on, by content."),
    "explain": ("explain:explain", "Say what an error code means and how it is mended."),
    "gate": ("gate:gate", "List, read and answer the gates of a run."),
    "graph": ("graph:graph", "Draw the protocol of the config, or of a run."),
    "init": ("run:init", "Make a project in FOLDER."),
    "knowledge": ("knowledge:knowledge", "Notes, the wiki above them, and what is made of both."),
    "leaderboard": (
        "leaderboard:leaderboard",
        "All entries, best first, failed and rejected ones too.",
    ),
    "migrate": ("migrate:migrate", "Let a run go on under its changed protocol."),
    "pause": ("control:pause", "Let nothing new begin."),
    "plot": ("plot:plot", "A figure for a paper: scores, or gains beside the noise."),
    "report": ("report:report", "Write the page of a run, one HTML file."),
    "reproduce": ("run:reproduce", "Train and judge an entry again, and compare."),
    "resume": ("control:resume", "Let a paused run go on, with the next `eop run`."),
    "run": ("run:run", "Call Snakemake until the run stands still."),
    "status": ("inspect:status", "Where a run stands, what waits, what is spent."),
    "store": ("store:store", "The bytes behind splits, snapshots and entries."),
    "verify": ("inspect:verify", "Derive the run again and name all that disagrees."),
}


class _Commands(click.Group):
    """Lists and finds commands without importing those that are not called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in _COMMANDS:
            return None
        module, name = _COMMANDS[cmd_name][0].split(":")
        command: click.Command = getattr(import_module(f"eop.cli.{module}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, words) for name, (_, words) in _COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in _COMMANDS and not ctx.resilient_parsing:
            ctx.fail(
                f"No such command '{args[0]}'. {did_you_mean(args[0], _COMMANDS) or ''}".strip()
            )
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        found = [
            CompletionItem(name, help=words)
            for name, (_, words) in _COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
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
    # As NO_COLOR is: by name, whatever its value. click would take the codes out in a pipe.
    if os.environ.get("FORCE_COLOR") and not os.environ.get("NO_COLOR"):
        context.color = True


def main() -> None:
    """Run the command line; an ``EopError`` becomes its message and its exit status.

    With --json standard output has one JSON object of the error, too: nobody who reads it must
    tell an error from an answer by its words.
    """
    try:
        status = cli.main(prog_name="eop", standalone_mode=False)
    except EopError as error:
        click.echo(str(error), err=True)
        _end(error_json(error), int(error.exit_code))
    except click.ClickException as error:
        error.show()
        _end(usage_json(error), error.exit_code)
    except click.Abort:
        click.echo("Aborted!", err=True)
        sys.exit(int(ExitCode.FAILURE))
    except OSError as error:
        if error.errno not in (*_NO_ROOM, errno.EPIPE):
            raise
        _drop_unwritten()
        # Nobody reads on, as with `| head`: that is no fault.
        full = None if error.errno == errno.EPIPE else _full(error)
        if full:
            click.echo(str(full), err=True)
        sys.exit(int(full.exit_code if full else ExitCode.FAILURE))
    sys.exit(status if isinstance(status, int) else 0)


def _end(facts: dict[str, Any], status: int) -> NoReturn:
    if "--json" in sys.argv[1:]:
        print_json(facts)
    sys.exit(status)


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
