"""The workflow config: defaults, all faults at once, nothing unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

from eop.core.errors import EopError, ExitCode
from eop.project.config import check_keys, read_raw, resolve

ROOT = Path(__file__).parents[2]


def test_the_shipped_config_resolves() -> None:
    config = resolve(ROOT, read_raw(ROOT), "hstu-evolve")
    assert config.run == "hstu-evolve-synthetic"
    assert config.experiment == "config/experiments/synthetic.yaml"
    assert config.playbook == "config/playbooks/hstu-evolve.yaml"


def test_a_data_set_without_an_experiment_of_its_own_gets_the_base() -> None:
    config = resolve(ROOT, read_raw(ROOT, {"dataset": "yelp-2020"}), "demo")
    assert config.experiment == "config/experiments/base.yaml"
    assert config.data_dir == "data/raw/yelp-2020"


def test_every_fault_is_listed_at_once() -> None:
    raw = read_raw(ROOT, {"isolaton": "off", "threads": 0, "tolerance": "big"})
    with pytest.raises(EopError) as caught:
        check_keys(ROOT, raw)
    text = str(caught.value)
    assert caught.value.exit_code == ExitCode.CONFIG
    assert "unknown key 'isolaton' (did you mean 'isolation'?)" in text
    assert "threads" in text
    assert "tolerance" in text


def test_a_folder_that_is_no_project(tmp_path: Path) -> None:
    with pytest.raises(EopError, match=r"no config/config.yaml"):
        read_raw(tmp_path)


def test_true_as_snakemake_hands_it_over() -> None:
    assert resolve(ROOT, read_raw(ROOT, {"commit": "true"}), "demo").commit is True
    with pytest.raises(EopError, match="commit"):
        check_keys(ROOT, read_raw(ROOT, {"commit": "maybe"}))
