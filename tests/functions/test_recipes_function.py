"""Recipes: listed with their contents, laid over the base, refused when they are none."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from entry_samples import REPOSITORY
from function_runs import plan_of, small
from hypothesis import given
from hypothesis import strategies as st

from eop.core.errors import EopError, ExitCode
from eop.core.files import write_text
from eop.core.schema import problems
from eop.core.yaml_files import read_yaml
from eop.driver.announce import onward_lines
from eop.functions.recipes import compose, overlay, read_recipe, recipes, start
from eop.protocol.model import Output

if TYPE_CHECKING:
    from pathlib import Path

    from function_runs import Small

SCHEMA = read_yaml(REPOSITORY / "config" / "schemas" / "recipes.schema.yaml")
WIDE = "# Wider. As wide as it gets,\n# and more.\n\n# Not this.\nmodel:\n  dim: 8 # not this\n"
TUNED = "train: {epochs: 1, learning_rate: 1e-3}\n"
settings = st.recursive(
    st.integers() | st.booleans() | st.none() | st.text(max_size=3),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


def run_of(root: Path, **arguments: Any) -> Small:
    """A run whose plan lists recipes and composes them, instead of proposing and implementing."""
    plan = plan_of()
    phases = []
    for phase in plan.phases:
        if phase.id == "propose":
            told = {"folder": "config/recipes", **arguments}
            outputs = (Output("proposals", "proposals.json"),)
            phase = replace(phase, function="recipes", arguments=told, outputs=outputs, needs=())
        elif phase.id == "implement":
            outputs = (Output("experiment", "experiment.yaml"),)
            phase = replace(phase, function="compose", outputs=outputs)
        phases.append(replace(phase, pattern=None) if phase.function else phase)
    run = small(root, plan=replace(plan, phases=tuple(phases)))
    write_text(run.project.base_experiment, "model:\n  dim: 4\n  heads: 1\ntrain:\n  epochs: 2\n")
    for name, text in (("wide", WIDE), ("tuned", TUNED), ("notes", "")):
        write_text(root / "config/recipes" / f"{name}.yaml", text)
    write_text(root / "config/recipes/controls/leak.yaml", "model: {leak: true}\n")
    return run


def listed(run: Small) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(recipes(run.context("it01_propose")).read_text())
    return found


def opened(run: Small) -> list[dict[str, Any]]:
    """The branches of the run's recipes, opened."""
    items = listed(run)
    run.play("it01_baseline", {"baseline": run.baseline()})
    run.play("it01_propose", {"proposals": items})
    assert len(run.state.branches[1, "proposal"]) == len(items)
    return items


def test_the_list_is_made_first_and_the_rest_runs_beside_the_branches(tmp_path: Path) -> None:
    run = run_of(tmp_path)

    def reachable() -> set[str]:
        return {node.key for node in run.run.advance().frontier.instances}

    assert reachable() == {"it01_propose"}
    assert onward_lines(run.project, run.run.advance()) == [
        "THE RUN GOES ON: 1 more may run now; run the same command again."
    ]
    run.play("it01_propose", {"proposals": listed(run)})
    assert {"it01_propose", "it01_baseline", "it01_p03_train", "it01_publish"} <= reachable()


def test_a_folder_is_listed_by_name_with_titles_and_contents(tmp_path: Path) -> None:
    items = listed(run_of(tmp_path))
    assert problems(items, SCHEMA) == []
    assert [item["id"] for item in items] == ["notes", "tuned", "wide"]
    assert items[0] == {"id": "notes", "title": "notes", "hypothesis": "", "recipe": {}}
    assert items[2] == {
        "id": "wide",
        "title": "Wider",
        "hypothesis": "Wider. As wide as it gets, and more.",
        "recipe": {"model": {"dim": 8}},
    }


def test_named_recipes_come_in_the_order_named(tmp_path: Path) -> None:
    run = run_of(tmp_path, names=["wide", "tuned"])
    (tmp_path / "config/recipes/broken.yaml").write_text("{")
    assert [item["id"] for item in listed(run)] == ["wide", "tuned"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ({"names": ["wide", "wied"]}, "EOP690", "wied.yaml"),
        ({"folder": "config/none"}, "EOP690", "config/none"),
        ({"from": {"tuned": "wied"}}, "EOP690", "wied"),
        ({"from": {"tune": "wide"}}, "EOP690", "did you mean 'tuned'"),
        ({"from": {"tuned": "wide", "wide": "base"}}, "EOP692", "from scratch"),
    ],
)
def test_what_is_not_there_is_an_error_before_any_training(
    tmp_path: Path, arguments: dict[str, Any], code: str, words: str
) -> None:
    with pytest.raises(EopError, match=words) as caught:
        listed(run_of(tmp_path, **arguments))
    assert (caught.value.code, caught.value.exit_code) == (code, ExitCode.CONFIG)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a", "models: {dim: 8}\n", "did you mean 'model'"),
        ("a", "model: 8\n", "must be a mapping"),
        ("a", "- model\n", "must be a mapping"),
        ("a", "model: {dim: 8\n", "not valid YAML"),
        ("A b", "model: {dim: 8}\n", "lower-case"),
    ],
)
def test_a_file_that_is_no_recipe_is_named(
    tmp_path: Path, name: str, text: str, words: str
) -> None:
    path = tmp_path / f"{name}.yaml"
    path.write_text(text)
    with pytest.raises(EopError, match=words) as caught:
        read_recipe(path, f"config/recipes/{name}.yaml")
    assert caught.value.code == "EOP691"
    assert str(caught.value).startswith(f"config/recipes/{name}.yaml: ")


def test_a_branch_measures_its_recipe_over_the_base(tmp_path: Path) -> None:
    run = run_of(tmp_path, names=["wide"])
    opened(run)
    write_text(tmp_path / "config/recipes/wide.yaml", "model: {dim: 99}\n")
    made = read_yaml(compose(run.context("it01_p01_implement")))
    assert made == {"model": {"dim": 8, "heads": 1}, "train": {"epochs": 2}}
    assert start(run.context("it01_p01_train")) is None
    assert start(run.context("it01_baseline")) is None


def test_a_fine_tuning_is_composed_over_what_it_begins_with(tmp_path: Path) -> None:
    run = run_of(tmp_path, names=["tuned"], **{"from": {"tuned": "wide"}})
    (item,) = opened(run)
    assert problems([item], SCHEMA) == []
    assert item["start"] == {"of": "wide", "recipe": {"model": {"dim": 8}}}
    made = read_yaml(compose(run.context("it01_p01_implement")))
    assert made["model"] == {"dim": 8, "heads": 1}
    assert made["train"] == {"epochs": 1, "learning_rate": 0.001}, "1e-3 is a number, as in hstu"


def test_a_start_of_the_base_is_the_base(tmp_path: Path) -> None:
    run = run_of(tmp_path, names=["tuned"], **{"from": {"tuned": "base"}})
    (item,) = opened(run)
    assert item["start"] == {"of": "base", "recipe": {}}


@given(settings, settings)
def test_an_overlay_keeps_what_it_does_not_name(base: Any, over: Any) -> None:
    made = overlay(base, over)
    assert overlay(made, over) == made, "laying it twice changes nothing"
    if isinstance(base, dict) and isinstance(over, dict):
        assert made.keys() == base.keys() | over.keys()
        assert all(made[key] == base[key] for key in base.keys() - over.keys())
        assert all(made[key] == overlay(base.get(key), over[key]) for key in over)
    else:
        assert made == over
