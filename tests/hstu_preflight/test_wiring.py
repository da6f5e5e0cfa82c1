"""I11: faults of preference training and interventions without effect are named."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import torch
from planted import CONFIG, make_split

from hstu.config import parse_config
from hstu.models import build
from hstu.preflight import wiring
from hstu.preflight.bench import Bench

if TYPE_CHECKING:
    from hstu.models import Hstu

DPO = {"preference": {"loss": "dpo", "beta": 0.1, "top": 20, "skip": 3}}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    torch.set_num_threads(1)
    return Bench.load(CONFIG, make_split(tmp_path_factory.mktemp("data")))


def with_sections(bench: Bench, train: dict[str, Any], interventions: dict[str, Any]) -> Bench:
    data = bench.config.to_json()
    data = data | {"train": data["train"] | train, "interventions": interventions}
    return replace(bench, config=parse_config(data, source="test"))


def test_what_has_an_effect_passes(bench: Bench) -> None:
    changed = with_sections(bench, DPO, {"film": {}, "boost_loss": {"factor": 2.0}})
    finding = wiring.check(changed)
    assert finding.passed, finding.detail
    assert finding.measured["effect of film"] > 1e-3
    assert finding.measured["gain at the start"] == 0
    assert finding.measured["gain after a few steps"] > 0


def test_each_idle_intervention_is_named(bench: Bench) -> None:
    idle = {"film": {}, "boost_loss": {"factor": 1.0}, "mpta": {"rows": 0}}
    finding = wiring.check(with_sections(bench, {}, idle))
    assert finding.detail == "mpta changes nothing; boost_loss changes nothing"


def test_a_reference_that_is_not_the_start(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def another(model: Hstu) -> Hstu:
        return build(model.config, bench.items).eval().requires_grad_(False)

    monkeypatch.setattr("hstu.training.preference.frozen_copy", another)
    assert "starts with a gain of" in wiring.check(with_sections(bench, DPO, {})).detail


def test_a_reference_that_is_trained(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hstu.training.preference.frozen_copy", lambda model: model)
    detail = wiring.check(with_sections(bench, DPO, {})).detail
    assert "gains nothing" in detail
    assert "changes its reference" in detail
