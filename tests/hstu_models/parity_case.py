"""A parity fixture: what a file of reference numbers holds, in this project's terms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from hstu.data.batches import Batch, History, TrainingBatch, TrainingRows
from hstu.data.items import Items
from hstu.models import ExperimentConfig, Hstu, ModelConfig, TrainConfig, build

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    Arrays = Mapping[str, NDArray[Any]]

# Our names of a block's parameters, and the reference's.
BLOCK_NAMES = {
    "uvqk": "uvqk",
    "time_bias": "time_bias",
    "position_bias": "pos_bias",
    "out.weight": "out_weight",
    "out.bias": "out_bias",
}


class Tolerance(NamedTuple):
    """How far a number may be from the reference's."""

    forward: float
    token: float
    relative: float
    gradient: float
    """Relative to an array's largest gradient."""


FLOAT32 = Tolerance(forward=1e-5, token=5e-5, relative=1e-5, gradient=1e-4)
FLOAT64 = Tolerance(forward=1e-10, token=1e-10, relative=1e-10, gradient=1e-10)


class Case:
    """The arrays of a file and what is made of them: items, config, model, batches.

    The item table of the reference has a row for every id up to the largest. Ours has the same
    rows, those of the candidates first and in scoring order, so that nothing of it goes unchecked.
    """

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays
        self.lengths: list[int] = arrays["lengths"].tolist()
        self.blocks, self.width = (int(arrays["cfg"][place]) for place in (4, 7))
        corpus = arrays["all_item_ids"].astype(np.int64)
        others = np.setdiff1d(np.arange(1, len(arrays["w.item_emb"])), corpus)
        self.corpus = len(corpus)
        self.items = _items(np.concatenate([corpus, others]))
        self.config = ExperimentConfig(model=_shape(arrays["cfg"]), train=_training(arrays["cfg"]))
        self.double = arrays["w.item_emb"].dtype == np.float64
        self.tolerance = FLOAT64 if self.double else FLOAT32

    @property
    def judged(self) -> NDArray[np.bool_]:
        """The users [B] whose target the reference can rank: a candidate, and not seen before."""
        targets, histories = self.arrays["target_ids"], self.arrays["hist_ids"]
        repeated = [
            t in ids[:n] for t, ids, n in zip(targets, histories, self.lengths, strict=True)
        ]
        return np.isin(targets, self.items.ids[: self.corpus]) & ~np.array(repeated)

    @classmethod
    def read(cls, path: Path) -> Case:
        """The case of an ``.npz`` file."""
        return cls(dict(np.load(path)))

    def names(self) -> dict[str, str]:
        """Our parameters' names and the reference's."""
        found = {"items.weight": "item_emb", "positions": "pos_emb"}
        for block in range(self.blocks):
            found |= {f"blocks.{block}.{a}": f"block{block}.{b}" for a, b in BLOCK_NAMES.items()}
        return found

    def theirs(self, ours: NDArray[Any], name: str) -> NDArray[Any]:
        """A parameter, or its gradient, with the item table's rows in the reference's order."""
        if name != "item_emb":
            return ours
        table = np.empty_like(ours)
        table[np.concatenate([[0], self.items.ids])] = ours
        return table

    def model(self) -> Hstu:
        """The model with the reference's weights, in evaluation mode and of their precision."""
        model = build(self.config, self.items).to(torch.float64 if self.double else torch.float32)
        order = np.concatenate([[0], self.items.ids])
        weights = {ours: self.arrays[f"w.{theirs}"] for ours, theirs in self.names().items()}
        weights["items.weight"] = weights["items.weight"][order]
        model.load_state_dict({name: torch.tensor(array) for name, array in weights.items()})
        return model.eval()

    def index(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Item indices of ids of any shape; 0 stays 0."""
        known = ids != 0
        index = np.zeros(ids.shape, np.int64)
        index[known] = self.items.index(ids[known])
        return index

    def negatives(self) -> torch.Tensor:
        """Item indices [T, R] of the negatives."""
        return torch.from_numpy(self.index(self.arrays["negative_ids"]))

    def padded(self, *, target_in_padding: bool = False) -> TrainingBatch:
        """The batch in the reference's layout, N wide."""
        lengths = torch.from_numpy(self.arrays["lengths"])
        stamps = torch.from_numpy(self.arrays["timestamps_N"])
        ids = torch.from_numpy(self.index(self.arrays["ids_N_train"]))
        valid = torch.arange(self.width) < lengths[:, None]
        following = torch.cat([ids[:, 1:], ids[:, -1:]], dim=1)
        nexts = torch.cat([stamps[:, 1:], stamps[:, -1:]], dim=1)
        items = ids if target_in_padding else ids * valid
        return TrainingBatch(Batch(items, stamps, nexts, lengths), following * valid)

    def collated(self) -> TrainingBatch:
        """The batch as training makes it of events, as wide as the longest history."""
        arrays = self.arrays
        histories = [
            History(self.index(ids[:length]), stamps[:length], int(request))
            for ids, stamps, length, request in zip(
                arrays["hist_ids"],
                arrays["hist_timestamps"],
                self.lengths,
                arrays["target_timestamps"],
                strict=True,
            )
        ]
        targets = self.index(arrays["target_ids"])
        rows = TrainingRows(histories, targets, self.config.model.history_length)
        return rows.batch(range(len(rows)))


def _items(ids: NDArray[np.int64]) -> Items:
    size = len(ids)
    return Items(ids, ("",) * size, np.zeros((size, 0), bool), (), np.zeros(size, np.int64))


def _shape(cfg: NDArray[np.int64]) -> ModelConfig:
    dim, heads, dqk, dv, blocks, history, out_len, width = cfg[:8].tolist()
    assert width == history + out_len
    return ModelConfig(
        dim=dim,
        blocks=blocks,
        heads=heads,
        dqk=dqk,
        dv=dv,
        history_length=history,
        out_len=out_len,
        input_dropout=0.2,
        linear_dropout=0.2,
        temperature=0.05,
        concat_ua=bool(cfg[11]),
    )


def _training(cfg: NDArray[np.int64]) -> TrainConfig:
    return TrainConfig(
        epochs=1,
        batch_users=int(cfg[8]),
        learning_rate=1e-3,
        betas=(0.9, 0.98),
        weight_decay=0.0,
        negatives=int(cfg[10]),
    )
