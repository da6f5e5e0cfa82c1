"""One experiment by hand, outside any protocol: the rules `train` and `evaluate`."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

from eop.agents.jail import choose
from eop.core.errors import EopError
from eop.functions.recommender import CandidateError, Recommender

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_TIMEOUT_S = 24 * 3600.0
_SEED = 1


def train(root: Path, split: str, experiment: str, checkpoint: str, threads: int) -> None:
    """Train the working tree's ``hstu/`` on an experiment config, from scratch.

    What an earlier call left is dropped: the experiment, the data or the code may have changed.
    """
    folder = (root / checkpoint).parent
    _drop(folder / f"seed{_SEED}", folder / "zone")
    with _as_failure():
        (out,) = _recommender(root, split, checkpoint, threads).train(root / experiment, [_SEED])
        shutil.copyfile(out / "checkpoint.json", root / checkpoint)


def evaluate(root: Path, split: str, checkpoint: str, metrics: str, threads: int) -> None:
    """Judge that checkpoint on the validation target."""
    folder = (root / checkpoint).parent / f"seed{_SEED}"
    _drop(folder.with_name(f"seed{_SEED}-validation"))
    with _as_failure():
        (out,) = _recommender(root, split, checkpoint, threads).evaluate([folder], "validation")
        shutil.copyfile(out / "metrics.json", root / metrics)


def _drop(*folders: Path) -> None:
    for folder in folders:
        if folder.exists():
            shutil.rmtree(folder)


def _recommender(root: Path, split: str, checkpoint: str, threads: int) -> Recommender:
    return Recommender(
        tree=root,
        pristine=root,
        split=(root / split).parent,
        scratch=(root / checkpoint).parent,
        jail=choose("off", trusted=True),
        threads=threads,
        timeout_s=_TIMEOUT_S,
    )


@contextmanager
def _as_failure() -> Iterator[None]:
    """By hand there is no branch that could fail: a candidate's failure is the command's."""
    try:
        yield
    except CandidateError as error:
        raise EopError("EOP680", f"the experiment failed: {error}") from error
