"""Checkpoints: ``model.safetensors`` and the side-car ``checkpoint.json`` that describes it."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from safetensors.torch import save as to_bytes

from hstu.config import parse_config
from hstu.data.errors import HstuError
from hstu.data.files import read_json, sha256, write_bytes, write_json
from hstu.models.hstu import Hstu, build

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from torch import Tensor

    from hstu.data.items import Items

SCHEMA = "checkpoint/1"
_WEIGHTS = "model.safetensors"
_SIDE_CAR = "checkpoint.json"


def corpus_digest(items: Items) -> str:
    """Hex sha256 of the item ids in their order: which rows a network's item table has."""
    return hashlib.sha256(items.ids.astype("<i8").tobytes()).hexdigest()


def save(
    directory: Path,
    model: Hstu,
    items: Items,
    *,
    seed: int,
    threads: int,
    data: dict[str, str],
    start: str | None = None,
    runtime: dict[str, Any] | None = None,
) -> None:
    """Write the weights, then the side-car that vouches for them.

    ``data`` maps the names of the training files to their digests; ``start`` is the digest of the
    weights that training began with, ``None`` for fresh ones; ``runtime`` is how it computed.
    """
    weights = directory / _WEIGHTS
    state = {name: value.detach().contiguous().cpu() for name, value in model.state_dict().items()}
    write_bytes(weights, to_bytes(state))
    side_car = {
        "schema": SCHEMA,
        "model": {"path": _WEIGHTS, "sha256": sha256(weights), "size": weights.stat().st_size},
        "config": model.config.to_json(),
        "corpus": corpus_digest(items),
        "seed": seed,
        "threads": threads,
        "torch": str(torch.__version__),
        "data": data,
        "start": start,
        "runtime": runtime,
    }
    write_json(directory / _SIDE_CAR, side_car)


def withdraw(directory: Path) -> None:
    """Take back the side-car of an earlier training, before another one writes into its folder.

    Interrupted, that one would leave its own curve and snapshot beside weights of the other.
    """
    (directory / _SIDE_CAR).unlink(missing_ok=True)


def load(directory: Path, items: Items) -> Hstu:
    """The network of a checkpoint, in evaluation mode.

    Raises ``HstuError`` when a file is missing or altered, when the checkpoint was made for
    another corpus, or when its tensors do not fit this code.
    """
    side_car = _side_car(directory, items)
    weights = directory / _WEIGHTS
    source = str(directory / _SIDE_CAR)
    # What was counted in training comes with the weights.
    uncounted = replace(items, train_counts=np.zeros(len(items), np.int64))
    model = build(parse_config(side_car["config"], source=source), uncounted)
    try:
        model.load_state_dict(_tensors(weights, model.state_dict()))
    except RuntimeError as error:
        raise HstuError(
            f"the weights do not fit this version of the model: {error}",
            where=str(weights),
            hint="load the checkpoint with the code (snapshot and patch) that trained it",
        ) from error
    return model.eval()


def start_from(model: Hstu, directory: Path, items: Items) -> str:
    """Give ``model`` the weights of a checkpoint; return their digest.

    Parameters of interventions that the checkpoint does not have stay as they are. Raises
    ``HstuError`` as ``load`` does, and for any other difference in the tensors' names or shapes.
    """
    side_car = _side_car(directory, items)
    own = model.state_dict()
    state = _tensors(directory / _WEIGHTS, own)
    problems = [f"{name} is in the checkpoint only" for name in state.keys() - own.keys()]
    problems += [
        f"{name} is missing"
        for name in own.keys() - state.keys()
        if not name.startswith("interventions.")
    ]
    problems += [
        f"{name} is {tuple(state[name].shape)}, the config asks for {tuple(own[name].shape)}"
        for name in own.keys() & state.keys()
        if own[name].shape != state[name].shape
    ]
    if problems:
        raise HstuError(
            f"the weights do not fit this experiment: {'; '.join(sorted(problems))}",
            where=str(directory / _WEIGHTS),
            hint="keep the model section and the interventions of the checkpoint's config",
        )
    model.load_state_dict(own | state)
    digest: str = side_car["model"]["sha256"]
    return digest


def _side_car(directory: Path, items: Items) -> dict[str, Any]:
    """The side-car of a checkpoint for this corpus whose weights are those that it describes."""
    path = directory / _SIDE_CAR
    side_car = read_json(path)
    if side_car.get("schema") != SCHEMA:
        raise HstuError(f"not a checkpoint of schema {SCHEMA}", where=str(path))
    for key, kind in {"model": dict, "config": dict, "corpus": str}.items():
        if not isinstance(side_car.get(key), kind):
            raise HstuError(f"its key '{key}' is missing or of a wrong type", where=str(path))
    if side_car["corpus"] != corpus_digest(items):
        raise HstuError(
            "the checkpoint was trained on another list of items",
            where=str(path),
            hint="use it with the items.parquet that it was trained with",
        )
    _verify(directory / _WEIGHTS, side_car["model"])
    return side_car


def _verify(weights: Path, recorded: dict[str, Any]) -> None:
    if not weights.is_file():
        raise HstuError("the checkpoint's weights are missing", where=str(weights))
    if sha256(weights) != recorded.get("sha256"):
        raise HstuError(
            f"the weights are not those that {_SIDE_CAR} describes: size "
            f"{weights.stat().st_size}, recorded {recorded.get('size')}, and the digest differs",
            where=str(weights),
            hint="the file is truncated or foreign; train again or fetch it again",
        )


def _tensors(weights: Path, own: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of a file; those that the network has too are of its types."""
    try:
        state = load_file(weights)
    except SafetensorError as error:
        raise HstuError(f"not a file of safetensors: {error}", where=str(weights)) from error
    for name in sorted(own.keys() & state.keys()):
        if state[name].dtype != own[name].dtype:
            raise HstuError(
                f"{name} is {state[name].dtype}, not {own[name].dtype}", where=str(weights)
            )
    return state
