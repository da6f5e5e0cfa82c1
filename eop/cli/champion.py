"""`eop champion`: who leads a run, and how it leaves it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from eop.cli.completions import runs
from eop.cli.output import json_option, print_json, say_files
from eop.functions.champion import champion_of, export
from eop.leaderboard import read_entries
from eop.leaderboard.transfer import gains as transferred
from eop.leaderboard.transfer import not_replayed, read_claims
from eop.project.config import require_project
from eop.report import gains_text

if TYPE_CHECKING:
    from eop.leaderboard import Entry


@click.group(
    short_help="Who leads a run, and its way to another data set.",
    epilog="Example: eop champion show demo-synthetic",
)
def champion() -> None:
    """Who leads a run, what it stands on, and its way to another data set."""


@champion.command(
    short_help="The champion of RUN and the rows that it stands on.",
    epilog="Example: eop champion show demo-synthetic --json",
)
@click.argument("run", shell_complete=runs)
@json_option
@click.pass_obj
def show(root: Path, run: str, as_json: bool) -> None:
    """The champion of RUN and the rows that it stands on, the base first.

    The next turn starts from its tree; a row that was not promoted is never built on.
    """
    standing = champion_of(root, run)
    if as_json:
        chain = [_row(entry) for entry in standing.chain]
        facts = {"run": run, "champion": standing.champion.id, "chain": chain}
        print_json({"schema": "champion/1", **facts})
        return
    click.echo(f"{standing.champion.id}  {standing.champion.proposal.title}")
    for entry in standing.chain:
        click.echo(f"  {_line(entry)}")


def _row(entry: Entry) -> dict[str, Any]:
    decision = entry.decision
    return {
        "entry": entry.id,
        "title": entry.proposal.title,
        "delta": decision.delta if decision else None,
        "interval": decision.interval if decision else None,
        "seeds": list(entry.validation.seeds) if entry.validation else [],
        "test_ndcg@10": entry.test.mean["ndcg@10"] if entry.test else None,
        "test_reads": entry.test_reads,
    }


def _line(entry: Entry) -> str:
    row = _row(entry)
    gain = ""
    if row["interval"]:
        low, high = row["interval"]
        gain = f"  {row['delta']:+.4f} [{low:+.4f}, {high:+.4f}] on validation"
    test = row["test_ndcg@10"]
    shown = "not measured" if test is None else f"{test:.4f}"
    seeds = len(row["seeds"])
    return f"{entry.id}{gain}, {seeds} seeds, test NDCG@10 {shown}, read {row['test_reads']}x"


@champion.command(
    "export",
    short_help="Write the champion of RUN as a recipe and as patches.",
    epilog="Example: eop champion export demo-synthetic --name genres",
)
@click.argument("run", shell_complete=runs)
@click.option("--name", help="Of the recipe.  [default: the champion's proposal]")
@click.option(
    "--to",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("config/recipes/champions"),
    show_default=True,
)
@json_option
@click.pass_obj
def export_(root: Path, run: str, name: str | None, folder: Path, as_json: bool) -> None:
    """Write the champion of RUN as a recipe, as a patch and as a series of patches.

    The protocol replay measures all recipes of the default folder on the data set that the config
    names, as they are.
    """
    standing = champion_of(root, run)
    paths = export(root, standing, root / folder, name or standing.champion.proposal.id)
    shown = (path.relative_to(root) if path.is_relative_to(root) else path for path in paths)
    say_files(shown, as_json=as_json)


@champion.command(
    short_help="What replayed recipes gain on each data set.",
    epilog="Example: eop champion gains --json",
)
@click.option("--protocol", default="replay", show_default=True, help="Name of the protocol.")
@json_option
@click.pass_obj
def gains(root: Path, protocol: str, as_json: bool) -> None:
    """What replayed recipes gain on each data set, beside what was published."""
    require_project(root)
    claims = read_claims(root)
    found = transferred(read_entries(root), protocol, claims)
    missing = not_replayed(claims, found)
    if as_json:
        rows = [{**asdict(gain), "relative": gain.relative} for gain in found]
        others = {name: asdict(claim) for name, claim in missing.items()}
        print_json({"schema": "gains/1", "gains": rows, "not_replayed": others})
    else:
        click.echo(gains_text(found, missing), nl=False)
