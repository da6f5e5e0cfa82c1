"""Experiment configs: every shipped one is valid, every fault names file and key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from small import config_data

from hstu.config import parse_config, read_config
from hstu.data.errors import ExitCode, HstuError

SHIPPED = sorted((Path(__file__).parents[2] / "config" / "experiments").glob("*.yaml"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_configs_are_valid(path: Path) -> None:
    config = read_config(path)
    assert parse_config(config.to_json(), source="round trip") == config


FAULTS: dict[str, tuple[str, str, Any, str]] = {
    "unknown key": ("model", "blokcs", 2, "did you mean 'blocks'?"),
    "wrong type": ("model", "dim", "fifty", "must be of type int, found 'fifty'"),
    "yes for a number": ("model", "heads", True, "must be of type int, found True"),
    "fraction for a count": ("train", "epochs", 1.5, "must be of type int, found 1.5"),
    "out of range": ("model", "input_dropout", 1.0, "must be in [0, 1)"),
    "one beta": ("train", "betas", [0.9], "must be a list of 2 numbers"),
    "negative rate": ("train", "learning_rate", -1, "must be above 0"),
    "infinite rate": ("train", "learning_rate", float("inf"), "must be a finite number"),
    "no number": ("model", "temperature", float("nan"), "must be a finite number"),
    "endless count": ("train", "negatives", 10**20, "must be a finite number"),
    "endless rate": ("train", "learning_rate", 10**400, "must be a finite number"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_names_file_and_key(fault: str, tmp_path: Path) -> None:
    section, key, value, message = FAULTS[fault]
    data = config_data()
    data[section][key] = value
    path = tmp_path / "experiment.yaml"
    path.write_text(yaml.safe_dump(data))
    with pytest.raises(HstuError) as caught:
        read_config(path)
    assert str(path) in str(caught.value)
    assert f"{section}.{key}" in str(caught.value)
    assert message in str(caught.value)
    assert caught.value.exit_code == ExitCode.CONFIG


def test_a_missing_key_is_named() -> None:
    data = config_data()
    del data["model"]["dv"]
    with pytest.raises(HstuError, match=r"model\.dv: error: the key is missing"):
        parse_config(data, source="x.yaml")


@pytest.mark.parametrize("text", ["model: [", "just text", "model: {dim: 1}\nmodel: {dim: 2}\n"])
def test_what_is_not_a_config_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "experiment.yaml"
    path.write_text(text)
    with pytest.raises(HstuError) as caught:
        read_config(path)
    assert caught.value.exit_code == ExitCode.CONFIG


def test_what_cannot_be_read_as_text_is_refused(tmp_path: Path) -> None:
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    for path, message in ((binary, "not valid YAML"), (tmp_path, "cannot be read")):
        with pytest.raises(HstuError, match=message) as caught:
            read_config(path)
        assert caught.value.where == str(path)


def test_the_seed_of_a_permutation_is_not_negative() -> None:
    control = {"side_features": {"genre": 0.1, "control": {"permute_genres": -1}}}
    with pytest.raises(HstuError, match="permute_genres: error: must not be negative"):
        parse_config(config_data() | {"interventions": control}, source="x.yaml")
