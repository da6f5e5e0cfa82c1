"""The invariants of scientific safety, for every intervention and every shipped recipe.

I9 (a fixed evaluator) and I10 (full evaluation) are properties of the judge, not of a model.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from trial import (
    BASE,
    RECIPES,
    scores,
    training_step,
    with_config,
    with_interventions,
)

from hstu.config import Interventions, read_config
from hstu.interventions import REGISTRY
from hstu.preflight.run import INVARIANTS

if TYPE_CHECKING:
    from pathlib import Path

    from hstu.models import Hstu
    from hstu.preflight.bench import Bench

HONEST = sorted(RECIPES.glob("*.yaml"))
CONTROLS = sorted((RECIPES / "controls").glob("*.yaml"))
# Which invariants refuse a control that is a defect of the model. The others are defects of labels
# or of the training's result, which no check of a model can see.
REFUSED_BY = {
    "genre-leak": {"I5", "I8"},
    "boost-padded": {"I11"},
    "dpo-delta-zero": {"I11"},
}

# A block that leaves the baseline as it is.
NEUTRAL: dict[str, dict[str, Any]] = {
    "side_features": {},
    "input_compression": {"dropout": 0.0},  # its gate starts at zero
    "film": {},  # its two matrices start at zero
    "elapsed_decay": {},  # its rate is set to zero
    "boost_last": {"boost": 1.0},
    "scoring_head": {"decay": 0.0, "recent_logit": 200.0},
    "position_averaging": {"views": 1},
    "mpta": {"rows": 0},
    "focal": {},
    "boost_loss": {"factor": 1.0},
}

# Every knob: a block and what replaces one of its values.
_GENRES = {"genre": 0.5}
KNOBS: dict[str, tuple[dict[str, Any], Any]] = {
    "side_features.genre": (_GENRES, 1.0),
    "side_features.decade": (_GENRES, 0.5),
    "side_features.popularity": (_GENRES, 0.5),
    "side_features.control.leak": (_GENRES | {"control": {}}, True),
    "side_features.control.permute_genres": (_GENRES | {"control": {}}, 3),
    "input_compression.half_lives": ({}, [4, 16, 64]),
    "input_compression.state": ({}, 8),
    "input_compression.dropout": ({}, 0.4),
    "film.half_life": ({}, 2.0),
    "elapsed_decay.form": ({}, "multiplicative"),
    "elapsed_decay.start": ({}, 0.5),
    "elapsed_decay.scales_days": ({}, [1, 30]),
    "boost_last.boost": ({}, 2.0),
    "boost_last.last": ({}, 3),
    "scoring_head.decay": ({}, 0.3),
    "scoring_head.recent_logit": ({}, 1.0),
    "position_averaging.views": ({}, 2),
    "mpta.rows": ({}, 2),
    "mpta.last": ({}, 1),
    "mpta.shortest": ({}, 4),
    "focal.gamma": ({}, 1.0),
    "focal.alpha": ({}, 0.5),
    "boost_loss.factor": ({}, 3.0),
    "boost_loss.last": ({}, 1),
    "boost_loss.counted_from": ({}, "padded_width"),
}


@pytest.fixture(autouse=True)
def shorter_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer draws of the first loss, whose tolerance is in standard errors, and shorter runs."""
    monkeypatch.setattr("hstu.preflight.losses._TABLES", 8)
    monkeypatch.setattr("hstu.preflight.losses._BUILDS", 6)
    monkeypatch.setattr("hstu.preflight.losses._STEPS", 20)


def refusals(bench: Bench, recipe: Path) -> dict[str, str]:
    """What each invariant says that a recipe fails."""
    changed = with_config(bench, read_config(BASE, [recipe]))
    found = {name: check(name, changed) for name in INVARIANTS}
    return {name: finding.detail for name, finding in found.items() if not finding.passed}


def check(name: str, bench: Bench) -> Any:
    return import_module(f"hstu.preflight.{INVARIANTS[name]}").check(bench)


def test_every_intervention_is_known_to_these_tests() -> None:
    named = {field.name for field in fields(Interventions)}
    assert named == REGISTRY.keys() == NEUTRAL.keys()
    shipped = [
        read_config(BASE, [recipe]).to_json()["interventions"]
        for recipe in HONEST
        if "interventions" in recipe.read_text()
    ]
    assert named == {name for blocks in shipped for name in blocks}


@pytest.mark.parametrize("recipe", HONEST, ids=lambda path: path.stem)
def test_a_recipe_is_safe(recipe: Path, bench: Bench) -> None:
    """I1, I4, I5, I6, I7, I8, I11."""
    assert refusals(bench, recipe) == {}


@pytest.mark.parametrize("recipe", CONTROLS, ids=lambda path: path.stem)
def test_a_control_is_refused_when_the_model_is_at_fault(recipe: Path, bench: Bench) -> None:
    assert refusals(bench, recipe).keys() == REFUSED_BY.get(recipe.stem, set())


@pytest.mark.parametrize("name", REGISTRY)
def test_the_target_reaches_no_output(name: str, bench: Bench) -> None:
    """I2: with all that training adds, other targets leave every output as it is."""
    changed = with_interventions(bench, **{name: {}})
    model = changed.perturbed().eval()
    rows = changed.rows
    relabelled = replace(rows, targets=rows.targets % len(changed.items) + 1)
    with torch.no_grad():
        before, after = (model.encode(r.batch(range(24)).inputs) for r in (rows, relabelled))
    assert torch.equal(before, after)
    assert torch.equal(scores(model, rows), scores(model, relabelled))


@pytest.mark.parametrize("name", REGISTRY)
def test_a_neutral_block_is_the_baseline_to_the_bit(
    name: str, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I3: loss, gradients of the baseline's parameters, and scores."""
    # Terms of attention are computed in torch, so the baseline has to be as well.
    monkeypatch.setattr("hstu.kernels.native.usable", lambda *_: False)
    baseline = bench.fresh()
    neutral = with_interventions(bench, **{name: NEUTRAL[name]}).fresh()
    if name == "elapsed_decay":
        with torch.no_grad():
            neutral.interventions[name].rate.zero_()
    before, after = (training_step(model, bench.rows) for model in (baseline, neutral))
    assert before["loss"] > 0
    for part, value in before.items():
        assert torch.equal(after[part], value), part
    assert torch.equal(scores(baseline, bench.rows), scores(neutral, bench.rows))


def leaves(section: Any, prefix: str = "") -> set[str]:
    """Dotted names of all values of a config section's class."""
    names = set()
    for field in fields(section):
        inner = next((k for k in _classes() if str(field.type).startswith(k.__name__)), None)
        names |= leaves(inner, f"{prefix}{field.name}.") if inner else {prefix + field.name}
    return names


def _classes() -> list[Any]:
    module = import_module("hstu.config.interventions")
    return [kind for kind in vars(module).values() if is_dataclass(kind)]


def test_every_knob_is_tried() -> None:
    assert leaves(Interventions) == KNOBS.keys()


@pytest.mark.parametrize("knob", KNOBS)
def test_a_knob_is_wired(knob: str, bench: Bench) -> None:
    """I11: another value gives another loss or other scores, from parameters that are alike."""
    name, *path = knob.split(".")
    block, value = KNOBS[knob]
    other = dict(block)
    inner = other
    for key in path[:-1]:
        inner[key] = dict(inner[key])
        inner = inner[key]
    inner[path[-1]] = value
    models = [with_interventions(bench, **{name: b}).perturbed() for b in (block, other)]
    assert measured(models[0], bench) != measured(models[1], bench)


def test_nothing_but_the_knob_changes_what_is_measured(bench: Bench) -> None:
    for name in REGISTRY:
        changed = with_interventions(bench, **{name: {}})
        assert measured(changed.perturbed(), bench) == measured(changed.perturbed(), bench)


def measured(model: Hstu, bench: Bench) -> tuple[float, ...]:
    """A train-mode loss, its gradient's size, and the size of scores."""
    step = training_step(model, bench.rows)
    gradient = sum(float(g.double().square().sum()) for name, g in step.items() if name != "loss")
    ranked = scores(model, bench.rows).double().numpy()
    return float(step["loss"]), gradient, float(np.square(ranked).sum())
