"""The workflow config: defaults, all faults at once, nothing unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

from eop.core.errors import EopError, ExitCode
from eop.project.config import check_keys, read_raw, resolve
from eop.protocol.model import Budget, Plan

ROOT = Path(__file__).parents[2]


def plan_of(name: str, **variables: object) -> Plan:
    return Plan(name, "1", "", "p.eop.md", "hstu", variables, Budget(), (), ())


def test_the_shipped_config_resolves() -> None:
    config = resolve(ROOT, read_raw(ROOT), plan_of("hstu-evolve"))
    assert config.run == "hstu-evolve-synthetic"
    assert config.experiment == "config/experiments/synthetic.yaml"
    assert config.playbook == "config/playbooks/hstu-evolve.yaml"


def test_a_data_set_without_an_experiment_of_its_own_gets_the_base() -> None:
    config = resolve(ROOT, read_raw(ROOT, {"dataset": "yelp-2020"}), plan_of("demo"))
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
    assert resolve(ROOT, read_raw(ROOT, {"commit": "true"}), plan_of("demo")).commit is True
    with pytest.raises(EopError, match="commit"):
        check_keys(ROOT, read_raw(ROOT, {"commit": "maybe"}))


PATIENCE = {"type": "integer", "default": 2}


@pytest.mark.parametrize("given", [3, "3"])
def test_a_run_sets_variables_of_its_protocol(given: object) -> None:
    """Snakemake hands what is inside a mapping over as text."""
    plan = plan_of("demo", patience=PATIENCE, mood={"type": "text", "default": "calm"})
    raw = read_raw(ROOT, {"variables": {"patience": given, "mood": "7"}})
    assert resolve(ROOT, raw, plan).variables == {"patience": 3, "mood": "7"}
    assert resolve(ROOT, read_raw(ROOT), plan).variables == {"patience": 2, "mood": "calm"}


def test_every_variable_that_does_not_fit_is_listed() -> None:
    plan = plan_of("demo", patience=PATIENCE, strict={"type": "boolean", "default": True})
    raw = read_raw(ROOT, {"variables": {"patience": "many", "strict": 1, "patence": 3}})
    with pytest.raises(EopError) as caught:
        resolve(ROOT, raw, plan)
    assert (caught.value.code, caught.value.exit_code) == ("EOP605", ExitCode.CONFIG)
    assert "variable 'patience' is of type integer, not 'many'" in str(caught.value)
    assert "variable 'strict' is of type boolean, not 1" in str(caught.value)
    assert "unknown variable 'patence' (did you mean 'patience'?)" in str(caught.value)
