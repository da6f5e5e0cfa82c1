"""The rank of each user's held-out item: what an evaluation leaves and a comparison reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from eop.core.errors import EopError, ExitCode, Where

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Ranks:
    """Ranks of one evaluation (one seed), sorted by user.

    ``users``: int64 (U,), strictly increasing; ``ranks``: int64 (U,), 1 is the best.
    """

    users: NDArray[np.int64]
    ranks: NDArray[np.int64]

    @classmethod
    def of(cls, users: object, ranks: object, *, where: str = "ranks") -> Ranks:
        """Check and sort; ``EOP651`` for repeated users, ranks under 1, or unequal lengths."""
        ids = np.asarray(users, dtype=np.int64)
        values = np.asarray(ranks, dtype=np.int64)
        if ids.ndim != 1 or ids.shape != values.shape:
            raise _bad(where, f"{ids.shape} users but {values.shape} ranks")
        order = np.argsort(ids, kind="stable")
        ids, values = ids[order], values[order]
        if np.any(ids[1:] == ids[:-1]):
            raise _bad(where, f"user {ids[:-1][ids[1:] == ids[:-1]][0]} appears more than once")
        if np.any(values < 1):
            raise _bad(where, f"user {ids[values < 1][0]} has a rank under 1")
        return cls(ids, values)


def read_ranks(path: Path) -> Ranks:
    """Read ``ranks.parquet`` (columns ``user_id``, ``rank``; whole numbers, none missing)."""
    try:
        frame = pd.read_parquet(path, columns=["user_id", "rank"])
    except (OSError, ValueError) as error:
        raise _bad(str(path), f"cannot be read: {error}") from error
    for name in ("user_id", "rank"):
        if not pd.api.types.is_integer_dtype(frame[name]) or frame[name].isna().any():
            raise _bad(str(path), f"column '{name}' must hold whole numbers, none missing")
    return Ranks.of(frame["user_id"].to_numpy(), frame["rank"].to_numpy(), where=str(path))


def _bad(where: str, message: str) -> EopError:
    return EopError(
        "EOP651",
        message,
        where=Where(where),
        hint="evaluate again; a missing rank is never filled in",
        exit_code=ExitCode.DATA,
    )
