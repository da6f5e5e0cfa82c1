"""Recipes: merged over a config, refused by name, and worth the same on any experiment."""

from __future__ import annotations

from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import pytest
import torch
import yaml
from trial import BASE, RECIPES, scores, training_step, with_config, with_interventions

from hstu.config import read_config
from hstu.data.errors import ExitCode, HstuError
from hstu.models import load, save
from hstu.preflight.run import preflight

if TYPE_CHECKING:
    from pathlib import Path

    from hstu.preflight.bench import Bench

EXPERIMENTS = sorted((RECIPES.parent / "experiments").glob("*.yaml"))
SHIPPED = sorted(RECIPES.rglob("*.yaml"))
SYNAPSE = ("input_compression", "film", "scoring_head")


def recipe(folder: Path, data: Any, name: str = "recipe.yaml") -> Path:
    path = folder / name
    path.write_text(yaml.safe_dump(data))
    return path


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_recipe_changes_any_experiment_and_nothing_else(path: Path) -> None:
    for experiment in EXPERIMENTS:
        before = read_config(experiment).to_json()
        after = read_config(experiment, [path]).to_json()
        changes = yaml.safe_load(path.read_text())
        for name, section in before.items():
            untouched = section.keys() - changes.get(name, {}).keys()
            assert {key: after[name][key] for key in untouched} == {
                key: section[key] for key in untouched
            }
        for name, section in changes.items():
            assert section.keys() <= after[name].keys()


def test_later_recipes_win_and_keep_what_they_do_not_name(tmp_path: Path) -> None:
    first = recipe(tmp_path, {"interventions": {"boost_last": {"boost": 2.0, "last": 3}}}, "1.yaml")
    second = recipe(tmp_path, {"interventions": {"boost_last": {"last": 5}}}, "2.yaml")
    block = read_config(BASE, [first, second]).interventions.boost_last
    assert block is not None
    assert (block.boost, block.last) == (2.0, 5)


def test_a_recipe_can_switch_off(tmp_path: Path) -> None:
    off = recipe(tmp_path, {"interventions": {"film": None}})
    config = read_config(BASE, [RECIPES / "synapse.yaml", off])
    assert config.to_json()["interventions"].keys() == {"input_compression", "scoring_head"}


@pytest.mark.parametrize(
    ("data", "key"),
    [
        ({"modle": {"dim": 4}}, "modle"),
        ({"model": {"dims": 4}}, "model.dims"),
        ({"interventions": {"flim": {}}}, "interventions.flim"),
        ({"interventions": {"film": {"half_lives": 3}}}, "interventions.film.half_lives"),
        ({"interventions": {"film": {"half_life": 0}}}, "interventions.film.half_life"),
        ({"interventions": {"elapsed_decay": {"start": 0}}}, "interventions.elapsed_decay.start"),
    ],
)
def test_a_recipes_fault_names_the_recipe_and_the_key(tmp_path: Path, data: Any, key: str) -> None:
    path = recipe(tmp_path, data)
    with pytest.raises(HstuError) as caught:
        read_config(BASE, [RECIPES / "film.yaml", path])
    assert f"{path}: {key}: error" in str(caught.value)
    assert caught.value.exit_code == ExitCode.CONFIG


@pytest.mark.parametrize("text", ["", "just text", "- film", "model: ["])
def test_what_is_no_recipe_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text(text)
    with pytest.raises(HstuError, match=str(path)):
        read_config(BASE, [path])
    with pytest.raises(HstuError, match="does not exist"):
        read_config(BASE, [tmp_path / "none.yaml"])


def test_each_part_of_synapse_counts_and_reloads(bench: Bench, tmp_path: Path) -> None:
    """All eight combinations differ, in config and scores, and their checkpoints load strictly."""
    found = {}
    for flags in product([False, True], repeat=3):
        blocks = {name: {} for name, on in zip(SYNAPSE, flags, strict=True) if on}
        model = with_interventions(bench, **blocks).perturbed().eval()
        folder = tmp_path / "".join(str(int(flag)) for flag in flags)
        folder.mkdir()
        save(folder, model, bench.items, seed=0, threads=1, data={})
        found[flags] = scores(model, bench.rows)
        assert torch.equal(scores(load(folder, bench.items), bench.rows), found[flags])
    for one, other in combinations(found, 2):
        assert not torch.equal(found[one], found[other]), (one, other)
    recipe_blocks = read_config(BASE, [RECIPES / "synapse.yaml"]).to_json()["interventions"]
    assert recipe_blocks.keys() == set(SYNAPSE)


@pytest.mark.parametrize("knob", ["input_dropout", "linear_dropout"])
def test_each_dropout_counts_in_training_alone(knob: str, bench: Bench, tmp_path: Path) -> None:
    changed = with_config(bench, read_config(BASE, [recipe(tmp_path, {"model": {knob: 0.1}})]))
    models = [b.perturbed() for b in (bench, changed)]
    losses = [training_step(model, bench.rows)["loss"] for model in models]
    assert losses[0] != losses[1]
    assert torch.equal(*(scores(model, bench.rows) for model in models))


def test_length_alone_changes_nothing_for_those_who_are_shorter(
    bench: Bench, tmp_path: Path
) -> None:
    """With the divisor kept and the position bias re-centred, as a fair comparison needs."""
    longer = recipe(tmp_path, {"model": {"history_length": 20}})
    long = with_config(bench, read_config(BASE, [longer])).fresh().eval()
    short = bench.perturbed().eval()
    state = long.state_dict()
    for name, value in short.state_dict().items():
        spare = len(state[name]) - len(value)
        at = spare // 2 if name.endswith("position_bias") else 0
        state[name][at : at + len(value)] = value
    long.load_state_dict(state)
    different = scores(long, bench.rows)
    for block in long.blocks:
        block.shape = block.shape._replace(divisor=short.config.model.width)
    torch.testing.assert_close(scores(long, bench.rows), scores(short, bench.rows))
    assert not torch.allclose(different, scores(short, bench.rows))


def test_preflight_refuses_the_leaking_control(split: Path) -> None:
    report = preflight(BASE, split, recipes=[RECIPES / "controls" / "genre-leak.yaml"])
    failed = {item["id"] for item in report["invariants"] if item["status"] != "passed"}
    assert failed == {"I5", "I8"}
