"""Side features of items in the history: genre, decade and popularity (UDK).

With an item's vector e, its genres' mean vector g, its decade's vector y and its popularity's f::

    x_t = sqrt(D) (e + alpha_g g + alpha_y y + alpha_f f) + p_t

that is, before the factor sqrt(D). Tables start as N(0, 0.02^2); alpha is of the config and is not
learnt, but the optimiser may scale the tables, so that alpha is a start, not a share. An item of no
genre, unknown year or no training interaction gets a zero vector. Decades run from the 1910s to the
2020s, what lies outside joins the nearest; popularity is floor(log2(count)) of the *training*
interactions. A feature that no item of the corpus has is left out.

Targets, negatives and the corpus stay raw item vectors: what is added to the one and not to the
other tells them apart. The control ``leak`` does just that, by adding the features wherever an item
is looked up; preflight refuses it. The control ``permute_genres`` deals the genres to other items:
a gain that survives it does not come from the genres.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from hstu.data.errors import HstuError
from hstu.interventions.base import Intervention

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hstu.config import ModelConfig
    from hstu.config.interventions import SideFeaturesConfig
    from hstu.data.batches import Batch
    from hstu.data.items import Items

_INIT_STD = 0.02
_FIRST_DECADE = 1910
_DECADES = 12
_POPULARITIES = 32


class SideFeatures(Intervention):
    """The module of ``interventions.side_features``."""

    def __init__(self, config: SideFeaturesConfig, model: ModelConfig, items: Items) -> None:
        super().__init__()
        control = config.control
        self.leak = control is not None and control.leak
        seed = None if control is None else control.permute_genres
        self.channels = nn.ModuleList()
        if config.genre and items.genres.any():
            self.channels.append(Genres(genre_shares(items, seed), model.dim, config.genre))
        if config.decade and items.years.any():
            self.channels.append(Buckets(decades(items.years), _DECADES, model.dim, config.decade))
        if config.popularity:
            levels = popularity_levels(_counts(items))
            self.channels.append(Buckets(levels, _POPULARITIES, model.dim, config.popularity))

    def items(self, vectors: Tensor, batch: Batch) -> Tensor:
        """The history's vectors with the features added, unless the lookup has done so."""
        return vectors if self.leak else self._added(vectors, batch.items)

    def lookup(self, vectors: Tensor, ids: Tensor) -> Tensor:
        """Any item's vector with the features added: the leaking control."""
        return self._added(vectors, ids) if self.leak else vectors

    def _added(self, vectors: Tensor, ids: Tensor) -> Tensor:
        for channel in self.channels:
            vectors = vectors + channel(ids)
        return vectors


class Genres(nn.Module):
    """alpha times the mean vector of an item's genres."""

    shares: Tensor

    def __init__(self, shares: NDArray[np.float32], dim: int, alpha: float) -> None:
        super().__init__()
        self.alpha = alpha
        padded = functional.pad(torch.from_numpy(shares), (0, 0, 1, 0))  # row 0 is padding
        self.register_buffer("shares", padded, persistent=False)
        self.table = nn.Parameter(torch.empty(shares.shape[1], dim).normal_(std=_INIT_STD))

    def forward(self, ids: Tensor) -> Tensor:
        """Vectors [..., D] of item indices."""
        return self.alpha * (self.shares[ids] @ self.table)


class Buckets(nn.Module):
    """alpha times the vector of the bucket that an item is in; bucket 0 has none.

    The buckets are kept with the weights: those of popularity are known in training alone.
    """

    bucket: Tensor

    def __init__(self, bucket: NDArray[np.int64], count: int, dim: int, alpha: float) -> None:
        super().__init__()
        self.alpha = alpha
        self.register_buffer("bucket", functional.pad(torch.from_numpy(bucket), (1, 0)))
        self.table = nn.Parameter(torch.empty(count, dim).normal_(std=_INIT_STD))

    def forward(self, ids: Tensor) -> Tensor:
        """Vectors [..., D] of item indices."""
        rows = functional.pad(self.table, (0, 0, 1, 0))
        vectors: Tensor = self.alpha * functional.embedding(self.bucket[ids], rows)
        return vectors


def genre_shares(items: Items, permutation_seed: int | None) -> NDArray[np.float32]:
    """Each item's weights [X, G] over genres: equal ones that sum to 1, or all zero."""
    genres = items.genres
    if permutation_seed is not None:
        genres = np.random.default_rng(permutation_seed).permutation(genres)
    counts = genres.sum(1, keepdims=True).clip(min=1)
    shares: NDArray[np.float32] = (genres / counts).astype(np.float32)
    return shares


def decades(years: NDArray[np.int64]) -> NDArray[np.int64]:
    """Buckets 1..12 [X] of years, 0 for an unknown one (0)."""
    bucket = ((years - _FIRST_DECADE) // 10 + 1).clip(1, _DECADES)
    return np.where(years > 0, bucket, 0)


def popularity_levels(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Buckets 1 + floor(log2(count)) [X], 0 for an item without interaction."""
    # frexp gives the exponent exactly, where log2 may round up to the next whole number.
    exponent = np.frexp(counts.astype(np.float64))[1].astype(np.int64)
    return exponent.clip(0, _POPULARITIES)


def _counts(items: Items) -> NDArray[np.int64]:
    if items.train_counts is None:
        raise HstuError(
            "popularity is not known: the training interactions were not counted",
            where="interventions.side_features.popularity",
            hint="build the network with Items.read(...).counted([.../train.parquet])",
        )
    return items.train_counts
