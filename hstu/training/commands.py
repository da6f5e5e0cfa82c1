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
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True)
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Checkpoint folder.")
@click.option(
    "--snapshot-every",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Epochs between snapshots; a killed run goes on from the last one.",
)
def train_command(
    config: Path, data: Path, seed: int, threads: int, out: Path, snapshot_every: int
) -> None:
    """Train a model and leave its checkpoint and loss curve in OUT.

    Example: python -m hstu train --config config/experiments/synthetic.yaml
    --data data/splits/synthetic --seed 1 --threads 1 --out /tmp/model
    """
    train(
        read_config(config),
        data,
        out,
        seed=seed,
        threads=threads,
        snapshot_every=snapshot_every,
    )
