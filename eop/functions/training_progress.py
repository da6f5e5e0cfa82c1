"""How far a training at work is, as far as the files that it leaves show."""

from __future__ import annotations

import csv
import math
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from eop.agents.stream import tail
from eop.core.errors import EopError
from eop.core.yaml_files import read_yaml
from eop.functions.artifacts import Artifacts
from eop.runtime.node import Branch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from eop.project.project import Project
    from eop.protocol.model import Phase
    from eop.runtime.node import Instance
    from eop.runtime.state import State

# A curve of more epochs than anybody waits for; what is longer is no curve.
_MOST_CURVE = 1 << 20
_MOST_SECONDS = 1e9


@dataclass(frozen=True)
class Epoch:
    """A row of ``curve.tsv``; ``watched`` are the means that the objective reports beside it."""

    loss: float
    seconds: float
    watched: dict[str, float]


@dataclass(frozen=True)
class TrainingProgress:
    """Which seed is being trained, the ``place``-th of ``seeds``, and its epochs that are complete.

    ``last`` is the newest of them. ``share`` is of all epochs of all seeds, ``left_s`` an estimate
    from the epochs that are complete. What is not known is ``None``.
    """

    seed: int
    place: int
    seeds: int
    epoch: int
    epochs: int | None
    last: Epoch | None
    share: float | None
    left_s: float | None


def training_so_far(
    project: Project, state: State, at: Instance, now: float
) -> TrainingProgress | None:
    """The training of an open node; ``None`` when it trains nothing (any more).

    ``now`` is in seconds since the epoch. Candidates write these files: whatever is in them, there
    is no error, and no link is followed.
    """
    phase = project.plan.phase(at.step)
    for seeds, folders in _trainings(project, phase, project.run_dir / at.directory / "work"):
        done = [(folder / "checkpoint.json").is_file() for folder in folders]
        if not all(done):
            return _progress(seeds, folders, done.index(False), _epochs(project, state, at), now)
    return None


def _trainings(
    project: Project, phase: Phase, work: Path
) -> Iterator[tuple[Sequence[int], list[Path]]]:
    """The seeds and folders of each training of a phase that has begun, in their order.

    A later one begins when the one before it has been judged, and not at once.
    """
    function, seeds = phase.function, _seeds(project, phase)
    refits = [work / "refit" / f"seed{seed}-refit" for seed in seeds]
    if function in ("train", "baseline"):
        yield seeds, [work / f"seed{seed}" for seed in seeds]
    if function == "refit" or (function == "baseline" and (work / "refit").is_dir()):
        yield seeds, refits
    if function == "baseline" and (work / "twins").is_dir():
        twins = phase.arguments.get("twins", ())
        yield twins, [work / "twins" / f"seed{seed}" for seed in twins]


def _seeds(project: Project, phase: Phase) -> Sequence[int]:
    """The seeds that a phase trains; a refit has those of its branch's training."""
    if phase.function == "refit" and phase.branch:
        trained = (one for one in project.plan.members(phase.branch) if one.function == "train")
        phase = next(trained, phase)
    seeds: Sequence[int] = phase.arguments.get("seeds", ())
    return seeds


def _epochs(project: Project, state: State, at: Instance) -> int | None:
    """How many epochs the experiment config asks for; a candidate may have written it."""
    item = project.plan.phase(at.step).branch
    path: Path | None = project.base_experiment
    with suppress(EopError, OSError, UnicodeDecodeError, yaml.YAMLError, KeyError, TypeError):
        if item and at.branch:
            own = Artifacts(project, state).experiment(at.iteration, Branch(item, at.branch))
            path = own or path
        epochs = read_yaml(path)["train"]["epochs"] if path else None
        return epochs if isinstance(epochs, int) and epochs > 0 else None
    return None


def _progress(
    seeds: Sequence[int], folders: Sequence[Path], place: int, epochs: int | None, now: float
) -> TrainingProgress:
    curves = [read_curve(folder) for folder in folders[: place + 1]]
    own, known = curves[-1], [epoch for curve in curves for epoch in curve]
    share = left_s = None
    if epochs:
        # Of a seed that is trained every epoch counts, whatever of its curve can be read.
        done = place * epochs + min(len(own), epochs)
        share = done / (len(seeds) * epochs)
        if known:
            mean = sum(epoch.seconds for epoch in known) / len(known)
            left = mean * (len(seeds) * epochs - done)
            left_s = max(0.0, left - _since(folders[place], mean, now))
    return TrainingProgress(
        seed=seeds[place],
        place=place + 1,
        seeds=len(seeds),
        epoch=len(own),
        epochs=epochs,
        last=own[-1] if own else None,
        share=share,
        left_s=left_s,
    )


def _since(folder: Path, mean: float, now: float) -> float:
    """How much of an epoch has passed since the last one ended, of a mean one at most."""
    with suppress(OSError):
        # The clock of the machine that trains may be another one.
        return min(mean, max(0.0, now - (folder / "curve.tsv").lstat().st_mtime))
    return 0.0


def read_curve(folder: Path) -> list[Epoch]:
    """The epochs in a training's ``curve.tsv``, as far as they can be read."""
    if folder.is_symlink():
        return []
    found = []
    rows = csv.DictReader(tail(folder / "curve.tsv", _MOST_CURVE).splitlines(), delimiter="\t")
    with suppress(csv.Error):
        for row in rows:
            numbers = _numbers(row)
            if "loss" in numbers and 0 <= numbers.get("seconds", -1) <= _MOST_SECONDS:
                watched = {name: number for name, number in numbers.items() if name not in _OWN}
                found.append(Epoch(numbers["loss"], numbers["seconds"], watched))
    return found


_OWN = {"epoch", "loss", "tokens", "seconds"}


def _numbers(row: dict[str | Any, str | Any]) -> dict[str, float]:
    """The cells that are finite numbers, in the order of their columns."""
    found = {}
    for name, cell in row.items():
        with suppress(ValueError, TypeError):
            value = float(cell)
            if isinstance(name, str) and math.isfinite(value):
                found[name] = value
    return found
