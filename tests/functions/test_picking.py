"""Which directions the next turn is told: a person's order, else a critic's, repeats last."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from function_runs import Small, plan_of, small
from hypothesis import given
from hypothesis import strategies as st

from eop.core.files import read_json, write_json
from eop.core.schema import problems
from eop.core.yaml_files import read_yaml
from eop.driver.announce import closing_lines
from eop.driver.told import sections
from eop.functions.picking import order_words, picked
from eop.functions.registry import function
from eop.protocol.model import Gate, OnReject, Output, Phase
from eop.report import status_json, status_text

sys.path.insert(0, str(Path(__file__).parents[1] / "knowledge"))
from knowledge_samples import note
from knowledge_samples import project as knowledge

REPOSITORY = Path(__file__).parents[2]
SCHEMA = read_yaml(REPOSITORY / "config/schemas/picked.schema.yaml")
NAMED = [
    {"title": "FiLM on users", "why": "Users differ."},
    {"title": "A deeper net", "why": "It held."},
    {"title": "A new loss", "why": "The old one is done."},
]
RANKING = [
    {"direction": 3, "why": "Nothing speaks against it."},
    {"direction": 1, "why": "One result points there."},
    {"direction": 2, "why": "No result does."},
]


def numbers(found: dict) -> list[int]:
    return [one["direction"] for one in found["directions"]]


def test_the_critic_s_order_holds_and_what_repeats_a_negative_comes_last() -> None:
    found = picked(NAMED, RANKING, [], {3: ["bad"]}, keep=2)
    assert (found["order"], numbers(found)) == ("critic", [1, 2])
    assert [(one["direction"], one["repeats"]) for one in found["left"]] == [(3, ["bad"])]
    assert found["directions"][0]["judged"] == "One result points there."
    assert problems(found, SCHEMA) == []


def test_a_person_s_order_stands_as_it_is() -> None:
    found = picked(NAMED, RANKING, ["2", "3"], {3: ["bad"]}, keep=1)
    assert (found["order"], numbers(found)) == ("person", [2, 3])
    assert [one["direction"] for one in found["left"]] == [1]
    wrong = picked(NAMED, RANKING, ["7", "two"], {}, keep=1)
    assert (wrong["order"], numbers(wrong), wrong["ignored"]) == ("critic", [3], ["7", "two"])


def test_what_the_critic_forgot_comes_after_and_without_a_critic_the_writer_s_order_holds() -> None:
    assert numbers(picked(NAMED, RANKING[:1], [], {}, keep=9)) == [3, 1, 2]
    found = picked(NAMED, [], [], {}, keep=9)
    assert (found["order"], numbers(found)) == ("writer", [1, 2, 3])


@given(
    ranked=st.lists(st.integers(1, 9), max_size=9),
    asked=st.lists(st.sampled_from(["0", "1", "2", "3", "4", "x"])),
    repeated=st.sets(st.integers(1, 3)),
    keep=st.integers(1, 9),
)
def test_every_direction_is_told_or_left_once(
    ranked: list[int], asked: list[str], repeated: set[int], keep: int
) -> None:
    ranking = [{"direction": at, "why": "so"} for at in ranked]
    found = picked(NAMED, ranking, asked, {at: ["n"] for at in repeated}, keep=keep)
    left = [one["direction"] for one in found["left"]]
    assert sorted([*numbers(found), *left]) == [1, 2, 3] and numbers(found)
    assert problems(found, SCHEMA) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        ("Go on.\nOrder: 2, 1\nThanks.", ["2", "1"]),
        ("order:3 1", ["3", "1"]),
        ("order: 1\norder: 2", ["2"]),
        ("in order: 2", []),
        ("order: second", ["second"]),
    ],
)
def test_an_answer_orders_with_a_line_of_its_own(text: str, words: list[str]) -> None:
    assert order_words(text) == words


@pytest.fixture
def run(tmp_path: Path) -> Small:
    """A run whose gate shows directions and their ranking, in a project that knows FiLM failed."""
    plan = plan_of()
    agent = {"pattern": "linear", "nodes": {"worker": "scripted"}}
    files = {name: (Output(name, f"{name}.json", name),) for name in ("directions", "ranking")}
    phases = (
        *plan.phases,
        Phase("evolve", 70, "", "Go.", needs=("publish",), outputs=files["directions"], **agent),
        Phase("rank", 71, "", "Rank.", needs=("evolve",), outputs=files["ranking"], **agent),
        Phase(
            "pick",
            73,
            "",
            "",
            needs=("confirm",),
            function="pick",
            arguments={"keep": 2},
            outputs=(Output("picked", "picked.json", "picked"),),
        ),
    )
    confirm = Gate("confirm", 72, ("rank",), ("directions", "ranking"), OnReject())
    loop = replace(plan.loop, after=("pick",))
    made = small(tmp_path, plan=replace(plan, phases=phases, gates=(confirm,), loop=loop))
    knowledge(tmp_path)
    note(tmp_path, "bad", "worse")
    write_json(made.project.split_dir / "manifest.json", {"dataset": "toy", "digest": "ab" * 32})
    made.project.base_experiment.write_text("model: {dim: 8}\n")
    made.to_branches()
    made.lose("p01")
    made.lose("p02")
    made.play("it01_promote")
    made.play("it01_publish")
    made.play("it01_evolve", {"directions": NAMED})
    made.play("it01_rank", {"ranking": RANKING})
    return made


def test_the_next_turn_is_told_what_was_picked(run: Small) -> None:
    run.run.touch()
    found = read_json(function("pick")(run.context("it01_pick")))
    assert (found["order"], numbers(found)) == ("critic", [3, 2])
    assert found["left"][0]["repeats"] == ["bad"]
    run.play("it01_pick", {"picked": found})
    text = sections(run.context("it02_propose"), None, None)["directions"]
    assert text.splitlines()[2:] == [
        "1. A new loss: The old one is done.",
        "   Ranked here because: Nothing speaks against it.",
        "2. A deeper net: It held.",
        "   Ranked here because: No result does.",
    ]


def test_the_answer_of_the_gate_orders_them(run: Small) -> None:
    run.run.touch(reason="Once more.\norder: 1\n")
    found = read_json(function("pick")(run.context("it01_pick")))
    assert (found["order"], numbers(found)) == ("person", [1])
    run.play("it01_pick", {"picked": found})
    text = sections(run.context("it02_propose"), None, None)["directions"]
    assert "   Was tried before: bad" in text


@pytest.mark.parametrize(
    ("order", "told"),
    [
        ("1, tree", "names 'tree', and the directions are numbered 1 to 3: the rest was taken, and "
         "the next turn is told 1"),
        ("7 two", "names '7', 'two', and the directions are numbered 1 to 3: the critic's holds, "
         "and the next turn is told 3, 2"),
    ],
)  # fmt: skip
def test_a_word_that_names_no_direction_is_told_to_the_person(
    run: Small, order: str, told: str
) -> None:
    run.run.touch(reason=f"order: {order}\n")
    run.play("it01_pick", {"picked": read_json(function("pick")(run.context("it01_pick")))})
    position = run.run.advance()
    assert position.state.iteration == 2, "it is told in the turn that goes by it"
    (note,) = status_json(run.project, position, {})["problems"]
    assert note == f"iteration 1: the answer's line `order:` {told}"
    assert f"NOTE: {note}" in closing_lines(run.project, position)
    assert f"  note {note}" in status_text(run.project, position, {}).splitlines()


def test_an_order_that_was_taken_as_written_needs_no_word(run: Small) -> None:
    run.run.touch(reason="order: 2, 1\n")
    run.play("it01_pick", {"picked": read_json(function("pick")(run.context("it01_pick")))})
    position = run.run.advance()
    assert status_json(run.project, position, {})["problems"] == []
    path = run.project.run_dir / "it01/pick/artifacts/picked.json"
    path.write_text("{")
    assert status_json(run.project, position, {})["problems"] == []
