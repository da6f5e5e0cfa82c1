"""``hstu train``."""

from __future__ import annotations

from pathlib import Path

import click

from hstu.models import read_config
from hstu.training.loop import train


@click.command("train")
@click.option("--config", type=click.Path(path_type=Path), required=True, help="Experiment config.")
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder with train.parquet and items.parquet; nothing else in it is read.",
)
@click.option(
    "--seed", "seeds", type=click.IntRange(min=0), multiple=True, default=(1,), show_default=True
)
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True)
@click.option(
    "--out",
    "outs",
    type=click.Path(path_type=Path),
    multiple=True,
    required=True,
    help="Checkpoint folder, one for each --seed.",
)
@click.option(
    "--snapshot-every",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Epochs between snapshots; a killed run goes on from the last one.",
)
def train_command(
    config: Path,
    data: Path,
    seeds: tuple[int, ...],
    threads: int,
    outs: tuple[Path, ...],
    snapshot_every: int,
) -> None:
    """Train a model per seed and leave its checkpoint and loss curve in OUT.

    Example: python -m hstu train --config config/experiments/synthetic.yaml
    --data data/splits/synthetic --seed 1 --threads 1 --out /tmp/model
    """
    if len(seeds) != len(outs):
        raise click.UsageError(f"{len(seeds)} --seed but {len(outs)} --out: give one for each")
    experiment = read_config(config)
    for seed, out in zip(seeds, outs, strict=True):
        train(experiment, data, out, seed=seed, threads=threads, snapshot_every=snapshot_every)
