"""``hstu data``: split, synthesize, fetch."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import click

from hstu.data import split as splits
from hstu.data.fetch import fetch
from hstu.data.readers import FORMATS, Format, read_source
from hstu.data.sources import SOURCES
from hstu.data.synthetic import Shape, synthesize

_FOLDER = click.Path(path_type=Path, file_okay=False)


@click.group("data")
def data_commands() -> None:
    """Read raw data sets, split them, make the synthetic one."""


@data_commands.command("split")
@click.option("--source", type=_FOLDER, required=True, help="Folder of the raw data set.")
@click.option(
    "--format",
    "source_format",
    type=click.Choice(FORMATS),
    default="auto",
    show_default=True,
    help="How the raw files are laid out; auto goes by their names.",
)
@click.option("--dataset", help="Name for the manifest [default: the name of the source folder].")
@click.option("--allow-duplicates", is_flag=True, help="Keep rows that occur twice.")
@click.option("--drop-short-users", is_flag=True, help="Leave out users with fewer than 3 events.")
@click.option("--out", type=_FOLDER, required=True, help="Folder of the split.")
def split_command(
    source: Path,
    source_format: str,
    dataset: str | None,
    allow_duplicates: bool,
    drop_short_users: bool,
    out: Path,
) -> None:
    """Make the leave-one-out split of a raw data set.

    Example: hstu data split --source data/raw/ml-100k --out data/splits/ml-100k
    """
    raw = read_source(source, cast("Format", source_format))
    options = splits.SplitOptions(allow_duplicates, drop_short_users)
    manifest = splits.write_split(raw, dataset or source.resolve().name, out, options)
    if manifest["dropped_users"]:
        click.echo(f"left out {manifest['dropped_users']} users with fewer than 3 events")
    click.echo(
        f"{out}: {manifest['users']} users, {manifest['items']} items, "
        f"{manifest['events']} events, digest {manifest['digest'][:16]}"
    )


@data_commands.command("synthesize")
@click.option("--seed", type=click.IntRange(min=0), default=7, show_default=True)
@click.option("--users", type=int, default=Shape.users, show_default=True)
@click.option("--items", type=int, default=Shape.items, show_default=True)
@click.option("--genres", type=int, default=Shape.genres, show_default=True)
@click.option("--out", type=_FOLDER, required=True, help="Folder of the raw data set.")
def synthesize_command(seed: int, users: int, items: int, genres: int, out: Path) -> None:
    """Make a small data set in the shape of MovieLens, with structure to be found.

    Example: hstu data synthesize --seed 7 --out data/raw/synthetic
    """
    synthesize(seed, out, Shape(users=users, items=items, genres=genres))
    click.echo(f"{out}: synthetic data set, seed {seed}")


@data_commands.command("fetch")
@click.argument("dataset")
@click.option(
    "--to",
    "parent",
    type=_FOLDER,
    default=Path("data/raw"),
    show_default=True,
    help="The data set goes into a folder of its name in here.",
)
def fetch_command(dataset: str, parent: Path) -> None:
    """Fetch a public data set, or say where to get it.

    Example: hstu data fetch ml-100k --to data/raw
    """
    folder = fetch(dataset, parent)
    click.echo(f"{folder}: {dataset}\n{SOURCES[dataset].terms}")
