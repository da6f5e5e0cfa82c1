"""Checkpoints and snapshots that fit their digest and are foreign all the same."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
import torch
from click.testing import CliRunner
from safetensors.torch import load_file
from safetensors.torch import save as to_bytes
from training_samples import Recorder, experiment

from hstu.data.errors import HstuError
from hstu.models import load
from hstu.training import train
from hstu.training.commands import train_command

if TYPE_CHECKING:
    from pathlib import Path

    from hstu.data.items import Items


@pytest.fixture
def copy(baseline: Path, tmp_path: Path) -> Path:
    return shutil.copytree(baseline, tmp_path / "copy")


def sealed(folder: Path, weights: bytes) -> None:
    """Put ``weights`` into a checkpoint, and their digest into its side-car."""
    (folder / "model.safetensors").write_bytes(weights)
    side_car = json.loads((folder / "checkpoint.json").read_text())
    side_car["model"]["sha256"] = hashlib.sha256(weights).hexdigest()
    (folder / "checkpoint.json").write_text(json.dumps(side_car))


@pytest.mark.parametrize("content", [b"", b"no tensors", b"\xff" * 64])
def test_weights_that_are_no_safetensors_are_refused(
    copy: Path, items: Items, split: Path, content: bytes
) -> None:
    sealed(copy, content)
    with pytest.raises(HstuError, match="not a file of safetensors"):
        load(copy, items)
    with pytest.raises(HstuError, match="not a file of safetensors"):
        train(experiment(), split, copy / "next", start=copy)


@pytest.mark.parametrize("kind", [torch.float64, torch.float16, torch.int64])
def test_weights_of_another_type_are_refused(copy: Path, items: Items, kind: torch.dtype) -> None:
    state = load_file(copy / "model.safetensors")
    sealed(copy, to_bytes({name: tensor.to(kind) for name, tensor in state.items()}))
    with pytest.raises(HstuError, match=f"{kind}, not torch.float32"):
        load(copy, items)


@pytest.mark.parametrize("key", ["model", "config", "corpus"])
@pytest.mark.parametrize("value", [None, 5, []])
def test_a_side_car_of_wrong_types_is_refused(
    copy: Path, items: Items, key: str, value: Any
) -> None:
    path = copy / "checkpoint.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))
    with pytest.raises(HstuError, match=f"'{key}' is missing or of a wrong type"):
        load(copy, items)


def test_a_side_car_that_is_a_folder_is_refused(copy: Path, items: Items) -> None:
    (copy / "checkpoint.json").unlink()
    (copy / "checkpoint.json").mkdir()
    with pytest.raises(HstuError, match="cannot be read"):
        load(copy, items)


@pytest.fixture(scope="module")
def unfinished(split: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The state of an interrupted run."""
    out = tmp_path_factory.mktemp("unfinished")
    with pytest.raises(KeyboardInterrupt):
        train(experiment(), split, out, progress=Recorder((2, 0.0)))
    content = (out / "snapshot.pt").read_bytes()[32:]
    state: dict[str, Any] = torch.load(io.BytesIO(content), weights_only=True)
    return state


def left(folder: Path, state: Any) -> None:
    """Leave ``state`` as a snapshot whose digest fits."""
    buffer = io.BytesIO()
    torch.save(state, buffer)
    payload = buffer.getvalue()
    (folder / "snapshot.pt").write_bytes(hashlib.sha256(payload).digest() + payload)


@pytest.mark.parametrize(
    "change",
    [{"model": {}}, {"optimizer": {}}, {"curve": [[1, 2.0]]}, {"curve": None}],
    ids=["no weights", "no optimiser", "short curve", "no curve"],
)
def test_a_snapshot_of_another_version_is_refused(
    split: Path, tmp_path: Path, unfinished: dict[str, Any], change: dict[str, Any]
) -> None:
    left(tmp_path, unfinished | change)
    with pytest.raises(HstuError, match="does not fit this version of the code"):
        train(experiment(), split, tmp_path)


@pytest.mark.parametrize("state", [[1], {}, {"identity": {}}], ids=str)
def test_a_snapshot_without_its_parts_is_refused(split: Path, tmp_path: Path, state: Any) -> None:
    left(tmp_path, state)
    with pytest.raises(HstuError, match="does not hold curve, identity, model, optimizer"):
        train(experiment(), split, tmp_path)


def test_a_snapshot_that_torch_cannot_read_is_refused(split: Path, tmp_path: Path) -> None:
    payload = b"no pickle"
    (tmp_path / "snapshot.pt").write_bytes(hashlib.sha256(payload).digest() + payload)
    with pytest.raises(HstuError, match="torch cannot read it"):
        train(experiment(), split, tmp_path)


@pytest.mark.parametrize("outs", [("a", "a"), ("a", "a/../a")])
def test_two_seeds_never_share_a_folder(tmp_path: Path, outs: tuple[str, str]) -> None:
    argv = ["--config", "c.yaml", "--data", "d"]
    for seed, out in enumerate(outs):
        argv += ["--seed", str(seed), "--out", str(tmp_path / out)]
    done = CliRunner().invoke(train_command, argv)
    assert done.exit_code == 2
    assert "two --out name one folder" in done.output


def test_an_out_that_is_a_file_and_a_seed_beyond_32_bits_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    argv = ["--config", "c.yaml", "--data", "d", "--out"]
    assert CliRunner().invoke(train_command, [*argv, str(file)]).exit_code == 2
    argv += [str(tmp_path / "out"), "--seed", str(2**32)]
    assert CliRunner().invoke(train_command, argv).exit_code == 2
