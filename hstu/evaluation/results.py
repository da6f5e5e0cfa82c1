"""The two kinds of result, which never meet: canonical and subset.

A canonical result covers all users of a split; ``metrics.json`` and ``ranks.parquet`` are its
files. A subset result covers some; its files (``subset-metrics.json``, ``subset-ranks.parquet``),
schema and metric names (``subset/ndcg@10``) say so, and no reader takes one for the other.
"""

from __future__ import annotations

import hashlib
from dataclasses import MISSING, asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from hstu.data.errors import HstuError
from hstu.data.files import read_json, write_json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from hstu.data.split import Target

CANONICAL_SCHEMA = "hstu.metrics/1"
SUBSET_SCHEMA = "hstu.subset-metrics/1"
CANONICAL_FILE = "metrics.json"
SUBSET_FILE = "subset-metrics.json"
SUBSET_PREFIX = "subset/"


@dataclass(frozen=True)
class Sample:
    """Which users a subset has: ``seed`` of the draw (``None``: they were named), their digest."""

    seed: int | None
    digest: str

    @classmethod
    def of(cls, users: NDArray[np.int64], seed: int | None) -> Sample:
        """The sample of the ``users`` (ids, ascending)."""
        return cls(seed, hashlib.sha256(users.astype("<i8").tobytes()).hexdigest())


@dataclass(frozen=True, kw_only=True)
class CanonicalResult:
    """All users, the full corpus.

    ``split`` is the split's digest; ``test_reads`` says how often the test target has been read
    for this checkpoint, ``None`` when there is nothing to count.
    """

    target: Target
    split: str
    users: int
    corpus: int
    metrics: Mapping[str, float]
    test_reads: int | None = None

    def to_json(self) -> dict[str, Any]:
        """The content of ``metrics.json``."""
        return {"schema": CANONICAL_SCHEMA, **_present(asdict(self))}


@dataclass(frozen=True, kw_only=True)
class SubsetResult:
    """``users`` of the split's ``population``, the full corpus; the rest is as above.

    The names of ``metrics`` begin with ``subset/``.
    """

    target: Target
    split: str
    users: int
    population: int
    sample: Sample
    corpus: int
    metrics: Mapping[str, float]
    test_reads: int | None = None

    def to_json(self) -> dict[str, Any]:
        """The content of ``subset-metrics.json``."""
        return {"schema": SUBSET_SCHEMA, **_present(asdict(self))}


def write_canonical(folder: Path, result: CanonicalResult) -> None:
    """Write ``metrics.json``."""
    write_json(folder / CANONICAL_FILE, result.to_json())


def write_subset(folder: Path, result: SubsetResult) -> None:
    """Write ``subset-metrics.json``."""
    write_json(folder / SUBSET_FILE, result.to_json())


def read_canonical(path: Path) -> CanonicalResult:
    """The canonical result of a folder or file; anything else, a subset too, is refused."""
    data = _read(path, CANONICAL_FILE, CANONICAL_SCHEMA, SUBSET_FILE, CanonicalResult)
    return CanonicalResult(**data)


def read_subset(path: Path) -> SubsetResult:
    """The subset result of a folder or file; anything else, a canonical one too, is refused."""
    data = _read(path, SUBSET_FILE, SUBSET_SCHEMA, CANONICAL_FILE, SubsetResult)
    return SubsetResult(**{**data, "sample": Sample(**data["sample"])})


def _read(path: Path, name: str, schema: str, other: str, cls: type) -> dict[str, Any]:
    file = path / name if path.is_dir() else path
    if not file.is_file() and (path / other).is_file():
        raise HstuError(f"there is {other}, but no {name}", where=str(path), hint=_TWO_KINDS)
    data = read_json(file)
    if data.get("schema") != schema:
        raise HstuError(
            f"schema is {data.get('schema')!r}, not {schema!r}", where=str(file), hint=_TWO_KINDS
        )
    del data["schema"]
    known = {field.name for field in fields(cls)}
    needed = {field.name for field in fields(cls) if field.default is MISSING}
    if wrong := (needed - set(data)) | (set(data) - known):
        raise HstuError(f"keys missing or unknown: {', '.join(sorted(wrong))}", where=str(file))
    values = data["metrics"]
    if not isinstance(values, dict) or not all(type(value) is float for value in values.values()):
        raise HstuError("metrics must be a mapping of names to numbers", where=str(file))
    return data


_TWO_KINDS = "canonical and subset evaluations are never compared or ranked together"


def _present(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}
