"""The training loop: deterministic, resumable, and quick to say when something is wrong."""

from __future__ import annotations

import math
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch

from hstu.data.batches import TrainingRows
from hstu.data.errors import ExitCode, HstuError
from hstu.data.files import sha256, write_bytes
from hstu.data.items import Items
from hstu.models import Hstu, build, save
from hstu.training.objective import draw_negatives, make_optimizer, token_weights, training_loss
from hstu.training.snapshot import Snapshot

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor

    from hstu.config import ExperimentConfig

# Users of like length share a forward pass, which halves the padding of a batch.
_LENGTH_GROUPS = 4


class EpochResult(NamedTuple):
    """One row of ``curve.tsv``: mean loss of a token, supervised tokens, wall seconds."""

    epoch: int
    loss: float
    tokens: int
    seconds: float


def train(
    config: ExperimentConfig,
    data: Path,
    out: Path,
    *,
    seed: int,
    threads: int,
    snapshot_every: int = 5,
) -> Hstu:
    """Train on ``data/train.parquet`` and ``data/items.parquet``; leave a checkpoint in ``out``.

    Writes ``model.safetensors``, ``checkpoint.json`` and ``curve.tsv``. Equal config, data, seed
    and threads give equal weights. An interrupted run continues from its last snapshot and ends
    with the same weights. Raises ``HstuError`` when the loss is not finite.
    """
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True)
    digests = {name: sha256(data / name) for name in ("train.parquet", "items.parquet")}
    items = Items.read(data / "items.parquet")
    rows = TrainingRows.read(data, items, history_length=config.model.history_length)

    torch.manual_seed(seed)
    model = build(config, items).to(_device())
    run = _Run(model, make_optimizer(model, config.train), rows, len(items), seed)
    identity = {"config": config.to_json(), "data": digests, "seed": seed, "threads": threads}
    snapshot = Snapshot(out / "snapshot.pt", identity)
    curve = [EpochResult(*row) for row in snapshot.restore(model, run.optimizer)]
    for epoch in range(len(curve) + 1, config.train.epochs + 1):
        curve.append(run.epoch(epoch))
        _report(curve[-1], config.train.epochs)
        _write_curve(out / "curve.tsv", curve)
        if epoch % snapshot_every == 0 and epoch < config.train.epochs:
            snapshot.save(model, run.optimizer, curve)
    save(out, model, items, seed=seed, threads=threads, data=digests)
    snapshot.remove()
    return model


@dataclass(frozen=True)
class _Run:
    model: Hstu
    optimizer: torch.optim.Optimizer
    rows: TrainingRows
    items: int
    seed: int

    def epoch(self, epoch: int) -> EpochResult:
        """One pass over the users. Its randomness depends on seed and epoch alone."""
        started = time.perf_counter()
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + epoch)
        torch.manual_seed(int(torch.randint(2**62, (), generator=generator)))
        self.model.train()
        rows = self.rows
        for change in self.model.changes:
            rows = change.rows(rows, generator)
        order = torch.randperm(len(rows), generator=generator)
        total, tokens = 0.0, 0
        for users in torch.split(order, self.model.config.train.batch_users):
            loss, count = self.step(rows, users.tolist(), generator)
            if not math.isfinite(loss):
                raise HstuError(
                    f"the loss is {loss} in epoch {epoch}",
                    where="training",
                    hint="lower train.learning_rate, or look for a division by zero in the model",
                    exit_code=ExitCode.FAILURE,
                )
            total, tokens = total + loss, tokens + count
        return EpochResult(epoch, total / tokens, tokens, time.perf_counter() - started)

    def step(
        self, rows: TrainingRows, users: list[int], generator: torch.Generator
    ) -> tuple[float, int]:
        """One optimiser step on the weighted mean loss; return the tokens' summed loss and number.

        The mean is over the tokens of the whole batch, whatever groups they are computed in.
        """
        draws, device = self.model.config.train.negatives, self.model.device
        losses, weights = [], []
        self.optimizer.zero_grad()
        for group in rows.groups(users, _LENGTH_GROUPS):
            negatives = draw_negatives(group, self.items, draws, generator).to(device)
            batch = group.to(device)
            losses.append(training_loss(self.model, batch, negatives))
            weights.append(token_weights(self.model, batch, losses[-1]))
        loss = torch.cat(losses)
        torch.autograd.backward(_mean(loss, weights))
        self.optimizer.step()
        return float(loss.detach().sum()), len(loss)


def _mean(losses: Tensor, weights: list[Tensor | None]) -> Tensor:
    """Mean of ``losses`` [T], weighted by the groups' ``weights`` where interventions set them."""
    set_weights = [part for part in weights if part is not None]
    if not set_weights:
        return losses.sum() / len(losses)
    weight = torch.cat(set_weights)
    return (weight * losses).sum() / weight.sum()


def _device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def _write_curve(path: Path, curve: list[EpochResult]) -> None:
    lines = ["\t".join(EpochResult._fields)]
    lines += [f"{r.epoch}\t{r.loss:.6f}\t{r.tokens}\t{r.seconds:.3f}" for r in curve]
    write_bytes(path, ("\n".join(lines) + "\n").encode())


def _report(row: EpochResult, epochs: int) -> None:
    speed = f"{row.tokens / row.seconds:,.0f} tokens/s"
    line = f"epoch {row.epoch}/{epochs}  loss {row.loss:.4f}  {speed}"
    print(line, file=sys.stderr, flush=True)
