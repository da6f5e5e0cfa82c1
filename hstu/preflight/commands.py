"""``hstu preflight``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from hstu.data.files import write_json
from hstu.preflight.run import preflight


@click.command("preflight")
@click.option("--config", type=click.Path(path_type=Path), required=True, help="Experiment config.")
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder with train.parquet and items.parquet.",
)
@click.option(
    "--recipe",
    "recipes",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Changes of the config, applied in the order given.",
)
@click.option("--threads", type=click.IntRange(1, 256), default=1, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Report, JSON.")
def preflight_command(
    config: Path, data: Path, recipes: tuple[Path, ...], threads: int, out: Path
) -> None:
    """Check the scientific-safety invariants of this tree's model; exit 1 when one fails.

    Example: python -m hstu preflight --config config/experiments/synthetic.yaml
    --data data/splits/synthetic --out preflight.json
    """
    report = preflight(config, data, recipes=recipes, threads=threads)
    write_json(out, report)
    for item in report["invariants"]:
        click.echo(f"{item['id']}  {item['status']:<7} {item['title']}")
        if item["status"] != "passed":
            click.echo(f"      {item['detail']}")
    sys.exit(0 if report["passed"] else 1)
