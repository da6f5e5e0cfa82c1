"""A model of another experiment is not written over by mistake; one's own goes on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml
from click.testing import CliRunner
from training_samples import Recorder, experiment

from hstu.data.errors import ExitCode, HstuError
from hstu.training import train
from hstu.training.commands import train_command

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result


def called(split: Path, out: Path, config: Path, *more: str) -> Result:
    given = ["--config", str(config), "--data", str(split), "--out", str(out), *more]
    return CliRunner().invoke(train_command, given)


def refusal(done: Result) -> HstuError:
    assert isinstance(done.exception, HstuError), done.output
    assert done.exception.exit_code == ExitCode.USAGE
    return done.exception


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "experiment.yaml"
    path.write_text(yaml.safe_dump(experiment().to_json()))
    return path


def other(config: Path) -> Path:
    settings = yaml.safe_load(config.read_text())
    settings["train"]["epochs"] += 1
    path = config.with_name("other.yaml")
    path.write_text(yaml.safe_dump(settings))
    return path


@pytest.mark.parametrize(
    ("changed", "name"),
    [(("--seed", "2"), "seed"), (("--include-validation",), "data"), ((), "config")],
)
def test_another_experiment_s_model_is_kept(
    split: Path, config: Path, tmp_path: Path, changed: tuple[str, ...], name: str
) -> None:
    out = tmp_path / "out"
    assert called(split, out, config).exit_code == 0
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    wanted = config if changed else other(config)
    error = refusal(called(split, out, wanted, *changed))
    assert error.message == f"the folder holds a model of another experiment ({name} differs)"
    assert error.where == str(out)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    assert called(split, out, wanted, *changed, "--force").exit_code == 0
    assert json.loads((out / "checkpoint.json").read_text())["schema"] == "checkpoint/1"
    assert {path.name: path.read_bytes() for path in out.iterdir()} != before


def test_the_same_experiment_may_be_trained_again(
    split: Path, config: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert called(split, out, config).exit_code == 0
    before = (out / "model.safetensors").read_bytes()
    assert called(split, out, config).exit_code == 0
    assert (out / "model.safetensors").read_bytes() == before


def test_an_interrupted_training_of_another_experiment_is_kept_and_one_s_own_goes_on(
    split: Path, config: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        train(experiment(), split, out, progress=Recorder((2, 0.0)))
    snapshot = (out / "snapshot.pt").read_bytes()
    error = refusal(called(split, out, other(config)))
    assert "an interrupted training of another experiment (config differs)" in error.message
    assert (out / "snapshot.pt").read_bytes() == snapshot
    done = called(split, out, config)
    assert done.exit_code == 0
    assert "going on after epoch 1" in done.output


def test_a_start_from_other_weights_is_another_experiment(
    split: Path, baseline: Path, config: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert called(split, out, config).exit_code == 0
    error = refusal(called(split, out, config, "--from", str(baseline)))
    assert "(start differs)" in error.message


def test_what_is_no_checkpoint_is_not_replaced_either(
    split: Path, config: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "checkpoint.json").write_text("not JSON")
    done = called(split, out, config)
    assert isinstance(done.exception, HstuError)
    assert (out / "checkpoint.json").read_text() == "not JSON"
