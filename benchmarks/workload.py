"""Networks and data of `hstu` for a shape."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from benchmarks.child import ROOT
from benchmarks.synthetic import Events, make_events
from hstu.data.batches import History, TrainingRows
from hstu.data.histories import HistoryTable
from hstu.data.items import Items
from hstu.evaluation.task import Questions
from hstu.models import Hstu, build, read_config, score_histories
from hstu.training.objective import NextItem, make_optimizer
from hstu.training.runtime import repeat_exactly

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from benchmarks.shapes import Shape
    from hstu.config import ExperimentConfig

_CONFIG = ROOT / "config" / "experiments" / "base.yaml"


def experiment(shape: Shape) -> ExperimentConfig:
    """The experiment of ``base.yaml`` in another shape."""
    base = read_config(_CONFIG)
    sizes = {name: getattr(shape, name) for name in ("dim", "blocks", "heads", "out_len")}
    model = replace(
        base.model,
        dqk=shape.head_dim,
        dv=shape.head_dim,
        history_length=shape.history_length,
        **sizes,
    )
    train = replace(base.train, batch_users=shape.batch_users, negatives=shape.negatives)
    return replace(base, model=model, train=train)


def corpus(count: int) -> Items:
    """``count`` items of which nothing is known."""
    ids = np.arange(1, count + 1)
    nothing = np.zeros((count, 0), np.bool_)
    return Items(ids, ("",) * count, nothing, (), np.zeros(count, np.int64))


def network(shape: Shape) -> Hstu:
    """A freshly initialised network, always the same."""
    torch.manual_seed(1)
    return build(experiment(shape), corpus(shape.items))


def events(shape: Shape, users: int, lengths: str) -> Events:
    """Events of ``users`` over the shape's corpus."""
    return make_events(users, shape.items, lengths=lengths, history_length=shape.history_length)


def training_rows(made: Events, history_length: int) -> TrainingRows:
    """The events as rows to train on."""
    return TrainingRows(histories(made), made.targets, history_length)


def histories(made: Events) -> list[History]:
    """The events as histories to score; their arrays are views."""
    bounds = zip(made.offsets[:-1], made.offsets[1:], strict=True)
    return [
        History(made.items[first:end], made.timestamps[first:end], int(request))
        for (first, end), request in zip(bounds, made.request_timestamps, strict=True)
    ]


def stepper(model: Hstu, rows: TrainingRows) -> Callable[[list[int]], int]:
    """A function that takes one training step on the users of some rows; it returns its tokens.

    From here on torch works deterministically, as it does in training.
    """
    repeat_exactly(torch.get_num_threads())
    train = model.config.train
    objective, optimizer = (
        NextItem(train, len(model.items.weight) - 1),
        make_optimizer(model, train),
    )
    generator = torch.Generator().manual_seed(1)
    model.train()

    def step(users: list[int]) -> int:
        optimizer.zero_grad()
        done = objective.backward(model, rows, users, generator)
        optimizer.step()
        return done.tokens

    return step


class Evaluation:
    """Ranks of the targets among all items that the user has not seen."""

    def __init__(self, model: Hstu, made: Events) -> None:
        self._model, self._histories = model, histories(made)
        self._questions = _questions(made, corpus(len(model.items.weight) - 1))

    def __len__(self) -> int:
        return len(self._histories)

    def ranks(self) -> NDArray[np.int64]:
        """Score the corpus for every history and count what stands before each target."""
        scores = score_histories(self._model, self._histories)
        return self._questions.ranks(chunk.numpy() for chunk in scores)


def _questions(made: Events, items: Items) -> Questions:
    size, users = len(items), np.arange(len(made))
    table = HistoryTable(users, made.offsets, made.items, made.timestamps, made.request_timestamps)
    pairs = np.unique(np.repeat(users, np.diff(made.offsets)) * size + made.items - 1)
    seen = np.bincount(pairs // size, minlength=len(made))
    offsets = np.concatenate([[0], np.cumsum(seen)])
    targets, seen_items = made.targets - 1, pairs % size
    return Questions("validation", made.digest, items, table, targets, offsets, seen_items)
