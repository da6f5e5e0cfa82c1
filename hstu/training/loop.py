"""The training loop: deterministic, resumable, and quick to say when something is wrong."""

from __future__ import annotations

import math
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from hstu.data.batches import TrainingRows
from hstu.data.errors import ExitCode, HstuError
from hstu.data.files import sha256
from hstu.data.items import Items
from hstu.models import Hstu, build, save, start_from
from hstu.models.devices import choose_device
from hstu.models.team import ALONE, Team
from hstu.training.curve import EpochResult, write_curve
from hstu.training.distributed import sum_gradients, sum_step
from hstu.training.objective import NextItem, Objective, Step, make_optimizer
from hstu.training.out_folder import make_way
from hstu.training.preference import Preference
from hstu.training.progress import Reporter, Silent, reporter
from hstu.training.runtime import DEFAULT, Runtime, repeat_exactly
from hstu.training.snapshot import Snapshot

if TYPE_CHECKING:
    from pathlib import Path

    from hstu.config import ExperimentConfig


def train(
    config: ExperimentConfig,
    data: Path,
    out: Path,
    *,
    seed: int = 1,
    threads: int = 1,
    include_validation: bool = False,
    start: Path | None = None,
    runtime: Runtime = DEFAULT,
    team: Team = ALONE,
    snapshot_every: int = 1,
    progress: Reporter | None = None,
    replace: bool = True,
) -> Hstu:
    """Train on ``data/train.parquet`` and ``data/items.parquet``; leave a checkpoint in ``out``.

    Writes ``model.safetensors``, ``checkpoint.json`` and ``curve.tsv``. Equal arguments and data
    give equal weights. An interrupted run leaves ``snapshot.pt``, and the same call goes on from it
    and ends with the same weights.

    ``include_validation`` adds ``data/validation.parquet``: all but each user's last event, for
    the training that follows a selection. ``start`` is the folder of a checkpoint whose weights
    the network begins with; the optimiser and the count of epochs begin anew. ``snapshot_every``
    is in epochs. Without ``progress`` the run shows itself on stderr. Every process of a ``team``
    calls this with equal arguments; the first one writes. Without ``replace``, ``out`` may not hold
    the model of another experiment.

    Raises ``HstuError`` when data, checkpoint or device cannot be used, or the loss is not finite.

    Example::

        config = read_config(Path("config/experiments/synthetic.yaml"))
        model = train(config, Path("data/splits/synthetic"), Path("model"), seed=1)
    """
    repeat_exactly(threads)
    device = choose_device(runtime.device)
    items, rows, digests = _read(data, config.model.history_length, include_validation)
    torch.manual_seed(seed)
    model = build(config, items).to(device)
    run: dict[str, Any] = {
        "seed": seed,
        "threads": threads,
        "data": digests,
        "start": None if start is None else start_from(model, start, items),
        "runtime": runtime.to_json(device, team.members),
    }
    runtime.prepare(model)
    objective = choose_objective(model, len(items), team, fresh=start is None)
    trainer = Trainer(model, make_optimizer(model, config.train), objective, seed, team)
    with progress or (reporter(config.train.epochs, seed) if team.leads else Silent()) as shown:
        identity = {"config": config.to_json(), "torch": str(torch.__version__), **run}
        snapshot = Snapshot(out / "snapshot.pt", identity)
        if team.leads:
            make_way(snapshot, replace=replace)
        trainer.run(rows, out / "curve.tsv", snapshot, snapshot_every, shown)
    if team.leads:
        save(out, model, items, **run)
        snapshot.remove()
    return model


def _read(
    data: Path, history_length: int, include_validation: bool
) -> tuple[Items, TrainingRows, dict[str, str]]:
    """What is trained on, and the digests of the files that it is read from."""
    parts = ("train", "validation") if include_validation else ("train",)
    items = Items.read(data / "items.parquet").counted([data / f"{p}.parquet" for p in parts])
    rows = TrainingRows.read(data, items, history_length=history_length, parts=parts)
    files = [f"{part}.parquet" for part in (*parts, "items")]
    return items, rows, {name: sha256(data / name) for name in files}


def choose_objective(model: Hstu, items: int, team: Team = ALONE, *, fresh: bool) -> Objective:
    """What the model's config says; ``fresh`` weights have no preferences to start from."""
    section = model.config.train.preference
    if section is None:
        return NextItem(model.config.train, items, team)
    if not team.alone:
        raise HstuError(
            "fine-tuning on preferences runs in one process",
            where="train.preference",
            hint="start it without torchrun",
            exit_code=ExitCode.USAGE,
        )
    if fresh:
        raise HstuError(
            "fine-tuning on preferences begins with a trained checkpoint",
            where="train.preference",
            hint="give the checkpoint's folder: --from CHECKPOINT",
            exit_code=ExitCode.USAGE,
        )
    return Preference(section, model, items)


@dataclass(frozen=True)
class Trainer:
    """A network and how it is trained."""

    model: Hstu
    optimizer: torch.optim.Optimizer
    objective: Objective
    seed: int
    team: Team = ALONE

    def run(
        self, rows: TrainingRows, curve_path: Path, snapshot: Snapshot, every: int, shown: Reporter
    ) -> None:
        """All epochs that ``snapshot`` has not seen; it is saved after each ``every`` of them."""
        epochs = self.model.config.train.epochs
        curve = snapshot.restore(self.model, self.optimizer, shown.note)
        kept = len(curve)
        if len(set(self.team.gather(kept))) > 1:
            raise HstuError(
                "the processes of the run found different snapshots",
                where=str(snapshot.path),
                hint="they must see the same folder",
            )
        try:
            for epoch in range(len(curve) + 1, epochs + 1):
                curve.append(self.epoch(epoch, rows, shown))
                if self.team.leads:
                    write_curve(curve_path, curve)
                if epoch % every == 0:
                    if self.team.leads:
                        snapshot.save(self.model, self.optimizer, curve)
                    kept = epoch
                shown.epoch(curve[-1], epochs)
        except KeyboardInterrupt:
            shown.note(f"interrupted: {kept} of {epochs} epochs are kept in {snapshot.path}")
            raise

    def epoch(self, epoch: int, rows: TrainingRows, shown: Reporter) -> EpochResult:
        """One pass over the users. Its randomness depends on seed and epoch alone.

        What members draw for themselves (dropout) depends on their number too.
        """
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + epoch)
        torch.manual_seed(int(torch.randint(2**62, (), generator=generator)) + self.team.member)
        self.model.train()
        for change in self.model.changes:
            rows = change.rows(rows, generator)
        order = torch.randperm(len(rows), generator=generator)
        batches = torch.split(order, self.model.config.train.batch_users)
        so_far, began = _Totals(), time.perf_counter()
        for number, users in enumerate(batches, 1):
            self.optimizer.zero_grad()
            step = self.objective.backward(self.model, rows, users.tolist(), generator)
            sum_gradients(self.team, self.model.parameters())
            so_far.add(sum_step(self.team, step), epoch)
            self.optimizer.step()
            row = so_far.result(epoch, time.perf_counter() - began)
            shown.batch(row, number / len(batches))
        return row


class _Totals:
    """Sums over the tokens of an epoch."""

    def __init__(self) -> None:
        self._loss, self._tokens = 0.0, 0
        self._watched: Counter[str] = Counter()

    def add(self, step: Step, epoch: int) -> None:
        """Count a batch. Raises ``HstuError`` when its loss is no number."""
        if not math.isfinite(step.loss):
            raise HstuError(
                f"the loss is {step.loss} in epoch {epoch}",
                where="training",
                hint="lower train.learning_rate, or look for a division by zero in the model",
                exit_code=ExitCode.FAILURE,
            )
        self._loss += step.loss
        self._tokens += step.tokens
        self._watched.update(step.watched)

    def result(self, epoch: int, seconds: float) -> EpochResult:
        """The means over the tokens so far."""
        watched = {name: total / self._tokens for name, total in self._watched.items()}
        return EpochResult(epoch, self._loss / self._tokens, self._tokens, seconds, watched)
