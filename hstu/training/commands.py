"""``hstu train``."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

import click

from hstu.models import read_config
from hstu.models.devices import choose_device
from hstu.models.team import joined
from hstu.training.loop import train
from hstu.training.runtime import PRECISIONS, Precision, Runtime

_INTERRUPTED = 130


@click.command("train")
@click.option("--config", type=click.Path(path_type=Path), required=True, help="Experiment config.")
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder with train.parquet and items.parquet; nothing else in it is read.",
)
@click.option(
    "--seed",
    "seeds",
    type=click.IntRange(0, 2**32 - 1),
    multiple=True,
    default=(1,),
    show_default=True,
)
@click.option("--threads", type=click.IntRange(1, 256), default=1, show_default=True)
@click.option(
    "--out",
    "outs",
    type=click.Path(path_type=Path, file_okay=False),
    multiple=True,
    required=True,
    help="Checkpoint folder, one for each --seed.",
)
@click.option(
    "--recipe",
    "recipes",
    type=click.Path(path_type=Path),
    multiple=True,
    help="What differs from the config, config/recipes/*.yaml; later ones win.",
)
@click.option(
    "--include-validation",
    is_flag=True,
    help="Train on validation.parquet too: all but the last event, after a selection.",
)
@click.option(
    "--from",
    "start",
    type=click.Path(path_type=Path),
    help="Checkpoint folder whose weights training begins with (fine-tuning).",
)
@click.option(
    "--device", default="auto", show_default=True, help="auto (CUDA if any), cpu, cuda or cuda:N."
)
@click.option(
    "--precision",
    type=click.Choice(PRECISIONS),
    default="float32",
    show_default=True,
    help="Type of the blocks' matrix products; all else is float32.",
)
@click.option("--compile", is_flag=True, help="Have torch.compile make the blocks.")
@click.option(
    "--snapshot-every",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Epochs between snapshots; an interrupted run goes on from the last one.",
)
@click.option(
    "--force", is_flag=True, help="Replace what OUT holds, were it the model of another experiment."
)
def train_command(
    config: Path,
    recipes: tuple[Path, ...],
    seeds: tuple[int, ...],
    outs: tuple[Path, ...],
    device: str,
    precision: Precision,
    compile: bool,
    force: bool,
    **options: Any,
) -> None:
    """Train a model per seed and leave its checkpoint and loss curve in OUT.

    Ctrl-C or a SIGTERM keeps the epochs that are complete; the same command goes on from there.
    The model of another experiment in OUT is not replaced without --force.
    On several GPUs: torchrun --nproc-per-node N -m hstu train ...

    Example: hstu train --config config/experiments/synthetic.yaml
    --data data/splits/synthetic --seed 1 --threads 1 --out /tmp/model
    """
    if len(seeds) != len(outs):
        raise click.UsageError(f"{len(seeds)} --seed but {len(outs)} --out: give one for each")
    if len({out.resolve() for out in outs}) != len(outs):
        raise click.UsageError("two --out name one folder: a seed would replace another")
    experiment = read_config(config, recipes) if recipes else read_config(config)
    runtime = Runtime(device, precision, compile)
    signal.signal(signal.SIGTERM, _interrupt)
    with joined(choose_device(device)) as team:
        for place, (seed, out) in enumerate(zip(seeds, outs, strict=True)):
            try:
                train(
                    experiment,
                    out=out,
                    seed=seed,
                    runtime=runtime,
                    team=team,
                    replace=force,
                    **options,
                )
            except KeyboardInterrupt:
                left = zip(seeds[place:], outs[place:], strict=True)
                pairs = " ".join(f"--seed {seed} --out {out}" for seed, out in left)
                if team.leads:
                    click.echo(f"to go on, run the same command with {pairs}", err=True)
                sys.exit(_INTERRUPTED)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
