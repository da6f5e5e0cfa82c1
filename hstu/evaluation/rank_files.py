"""Ranks on disk: one row a user, and in the file's own metadata what they are ranks of.

The metadata lets two files be compared without any other file, and refuses what must not be.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hstu.data.errors import HstuError
from hstu.data.files import read_integers, read_table, write_bytes
from hstu.evaluation.results import Sample

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from hstu.data.split import Target

CANONICAL_RANKS = "ranks.parquet"
SUBSET_RANKS = "subset-ranks.parquet"
_CANONICAL = ("hstu.ranks/1", CANONICAL_RANKS, "rank")
_SUBSET = ("hstu.subset-ranks/1", SUBSET_RANKS, "subset_rank")
_KEY = b"hstu"
_SAMPLE = {"seed": None, "digest": None}
_FACTS = {"target": str, "split": str, "corpus": int}
_TYPES = {_CANONICAL[0]: _FACTS, _SUBSET[0]: {**_FACTS, "sample": dict}}


@dataclass(frozen=True, eq=False, kw_only=True)
class CanonicalRanks:
    """The rank of each user's target among ``corpus`` items, all users of a split.

    ``users`` int64 [U], strictly ascending; ``ranks`` int64 [U], 1 is the best; ``split`` is the
    split's digest.
    """

    target: Target
    split: str
    corpus: int
    users: NDArray[np.int64]
    ranks: NDArray[np.int64]


@dataclass(frozen=True, eq=False, kw_only=True)
class SubsetRanks:
    """The same for the users of a sample."""

    target: Target
    split: str
    corpus: int
    users: NDArray[np.int64]
    ranks: NDArray[np.int64]
    sample: Sample


def write_canonical_ranks(folder: Path, ranks: CanonicalRanks) -> None:
    """Write ``ranks.parquet`` (user_id, rank)."""
    _write(folder, ranks, _CANONICAL, {})


def write_subset_ranks(folder: Path, ranks: SubsetRanks) -> None:
    """Write ``subset-ranks.parquet`` (user_id, subset_rank)."""
    sample = {"seed": ranks.sample.seed, "digest": ranks.sample.digest}
    _write(folder, ranks, _SUBSET, {"sample": sample})


def read_canonical_ranks(path: Path) -> CanonicalRanks:
    """The canonical ranks of an evaluation's folder or file; a subset's are refused."""
    facts, users, ranks = _read(path, _CANONICAL, other=SUBSET_RANKS)
    return CanonicalRanks(**facts, users=users, ranks=ranks)


def read_subset_ranks(path: Path) -> SubsetRanks:
    """The subset ranks of an evaluation's folder or file; canonical ones are refused."""
    facts, users, ranks = _read(path, _SUBSET, other=CANONICAL_RANKS)
    facts["sample"] = Sample(**facts["sample"])
    return SubsetRanks(**facts, users=users, ranks=ranks)


def _write(
    folder: Path,
    ranks: CanonicalRanks | SubsetRanks,
    kind: tuple[str, str, str],
    more: dict[str, Any],
) -> None:
    schema, name, column = kind
    facts = {
        "schema": schema,
        "target": ranks.target,
        "split": ranks.split,
        "corpus": ranks.corpus,
        **more,
    }
    table = pa.table([ranks.users, ranks.ranks], names=["user_id", column])
    table = table.replace_schema_metadata({_KEY: json.dumps(facts, sort_keys=True)})
    out = pa.BufferOutputStream()
    pq.write_table(table, out, compression="zstd")
    write_bytes(folder / name, out.getvalue().to_pybytes())


def _read(
    path: Path, kind: tuple[str, str, str], other: str
) -> tuple[dict[str, Any], NDArray[np.int64], NDArray[np.int64]]:
    schema, name, column = kind
    file = path / name if path.is_dir() else path
    if not file.is_file() and (path / other).is_file():
        raise HstuError(f"there is {other}, but no {name}", where=str(path), hint=_TWO_KINDS)
    table, columns = read_table(file), ["user_id", column]
    facts = _facts((table.schema.metadata or {}).get(_KEY, b"{}"))
    if facts.pop("schema", None) != schema or table.column_names != columns:
        raise HstuError(f"not ranks of schema {schema!r}", where=str(file), hint=_TWO_KINDS)
    complete = {name: type(value) for name, value in facts.items()} == _TYPES[schema]
    if not complete or facts.get("sample", _SAMPLE).keys() != _SAMPLE.keys():
        raise HstuError("what it says of itself is incomplete or of wrong types", where=str(file))
    users, ranks = read_integers(file, columns)
    if not len(users) or (np.diff(users) <= 0).any():
        raise HstuError("users are not each named once, in ascending order", where=str(file))
    if ranks.min() < 1 or ranks.max() > facts["corpus"]:
        raise HstuError(f"ranks are not within 1 to {facts['corpus']}", where=str(file))
    return facts, users, ranks


def _facts(metadata: bytes) -> dict[str, Any]:
    """What a file says of itself; nothing for what is no JSON object."""
    try:
        facts = json.loads(metadata)
    except ValueError:
        return {}
    return facts if isinstance(facts, dict) else {}


_TWO_KINDS = (
    "name a folder that `hstu evaluate` left; canonical and subset evaluations are never "
    "compared or ranked together"
)
