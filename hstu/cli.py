"""The command line ``python -m hstu``. Commands are imported only when they are called."""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from typing import NamedTuple, NoReturn

import click

from hstu.data.errors import ExitCode, HstuError


class _Entry(NamedTuple):
    target: str
    help: str
    example: tuple[str, ...]


_COMMANDS = {
    "data": _Entry(
        "hstu.data.commands:data_commands",
        "Split raw data, make the synthetic set, fetch a public one.",
        (
            "hstu data synthesize --seed 7 --out data/raw/synthetic",
            "hstu data split --source data/raw/synthetic --out data/splits/synthetic",
        ),
    ),
    "train": _Entry(
        "hstu.training.commands:train_command",
        "Train a model and leave its checkpoint.",
        (
            "hstu train --config config/experiments/synthetic.yaml \\",
            "    --data data/splits/synthetic --seed 1 --threads 1 --out model",
        ),
    ),
    "kernels": _Entry(
        "hstu.kernels.commands:kernels_command",
        "Build the compiled kernels; say which kernels run.",
        ("hstu kernels",),
    ),
    "preflight": _Entry(
        "hstu.preflight.commands:preflight_command",
        "Check the scientific-safety invariants of this tree's model.",
        (
            "hstu preflight --config config/experiments/synthetic.yaml \\",
            "    --data data/splits/synthetic --out preflight.json",
        ),
    ),
    "evaluate": _Entry(
        "hstu.evaluation.commands:evaluate",
        "Rank every user's held-out item over the full corpus.",
        (
            "hstu evaluate --split data/splits/synthetic --target validation \\",
            "    --checkpoint model --out evaluation",
        ),
    ),
    "popularity": _Entry(
        "hstu.evaluation.commands:popularity",
        "The same metrics for ranking by training popularity.",
        (
            "hstu popularity --split data/splits/synthetic --target validation \\",
            "    --out popularity",
        ),
    ),
    "compare": _Entry(
        "hstu.evaluation.compare_command:compare_command",
        "Compare two models user by user, with an interval.",
        ("hstu compare evaluation/base evaluation/candidate --metric ndcg@10",),
    ),
    "diagnose": _Entry(
        "hstu.evaluation.diagnose_commands:diagnose_commands",
        "Failure overlap, genres of rejects, popularity, the preference alarm.",
        ("hstu diagnose overlap --split data/splits/synthetic --checkpoint model",),
    ),
    "worker": _Entry(
        "hstu.evaluation.commands:worker",
        "Score histories; started by evaluate, never sees a target.",
        (),
    ),
}


class _LazyGroup(click.Group):
    """Lists and finds commands without importing those that are not called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = _COMMANDS.get(cmd_name)
        if entry is None:
            return None
        module, name = entry.target.split(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in _COMMANDS.items()])
        with formatter.section("Examples"):
            for entry in _COMMANDS.values():
                formatter.write("".join(f"  {line}\n" for line in entry.example))


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """HSTU, a generative sequential recommender: data, training, preflight, evaluation."""


def main(args: list[str] | None = None) -> None:
    """Run the command line; an ``HstuError`` is printed and becomes the exit status.

    With --json standard output has one JSON object of the error, too.
    """
    given = sys.argv[1:] if args is None else args
    try:
        status = cli.main(args, prog_name="hstu", standalone_mode=False)
    except HstuError as error:
        click.echo(str(error), err=True)
        facts = {"message": error.message, "where": error.where, "hint": error.hint}
        _end(facts, int(error.exit_code), as_json="--json" in given)
    except click.ClickException as error:
        error.show()
        facts = {"message": error.format_message(), "where": None, "hint": None}
        _end(facts, error.exit_code, as_json="--json" in given)
    except BrokenPipeError:
        # Nobody reads on; Python would write what is left when it ends, and fail once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(ExitCode.FAILURE)
    except click.Abort:
        click.echo("Aborted!", err=True)
        sys.exit(ExitCode.FAILURE)
    sys.exit(status if isinstance(status, int) else 0)


def _end(facts: dict[str, str | None], status: int, *, as_json: bool) -> NoReturn:
    if as_json:
        error = {"schema": "hstu.error/1", **facts, "status": status}
        click.echo(json.dumps(error, indent=2, sort_keys=True))
    sys.exit(status)
