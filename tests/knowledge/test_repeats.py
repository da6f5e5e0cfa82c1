from __future__ import annotations

import pytest
from knowledge_samples import note, project

from eop.core.schema import problems
from eop.core.yaml_files import read_yaml
from eop.knowledge.change import Change
from eop.knowledge.entities import read_registry
from eop.knowledge.repeats import repeats, screening
from eop.knowledge.store import open_store

NOW = {"dataset": "toy", "split": "ab" * 32, "base.model.dim": 8}
FILM = {"id": "film", "title": "Condition each token on its user", "hypothesis": "Users differ."}


@pytest.fixture
def root(tmp_path):
    return project(tmp_path)


def found(root, *items, **now):
    with open_store(root) as store:
        seen = repeats(store, read_registry(root), items, {**NOW, **now})
    return [(one.proposal, one.note.id, one.why) for one in seen]


def test_a_known_repeat_is_flagged_with_what_is_the_same(root):
    note(root, "bad", "worse")
    assert found(root, FILM) == [
        ("film", "bad", ("the same intervention: intervention:film", "the same name: film"))
    ]


@pytest.mark.parametrize("said", ["worse", "within_noise", "failed"])
def test_every_kind_of_negative_counts_and_a_gain_does_not(root, said):
    note(root, "good", "better")
    note(root, "bad", said)
    assert [name for _, name, _ in found(root, FILM)] == ["bad"]


@pytest.mark.parametrize(
    "now", [{"dataset": "other"}, {"split": "cd" * 32}, {"base.model.dim": 16}]
)
def test_under_other_conditions_it_is_another_experiment(root, now):
    note(root, "bad", "worse")
    assert found(root, FILM, **now) == []


def test_a_superseded_note_flags_nothing(root):
    note(root, "bad", "worse")
    note(root, "new", "better", supersedes=("bad",))
    assert found(root, FILM) == []


def test_recipes_are_compared_by_what_they_set(root):
    half = {"model.dropout": (0.2, 0.1)}
    about = ("dataset:toy", "intervention:dropout")
    note(root, "bad", "worse", change=Change(half), entities=about, proposal="half", title="Half")
    same = {"id": "again", "title": "Less noise", "recipe": {"model": {"dropout": 0.1}}}
    other = {"id": "more", "title": "Half", "recipe": {"model": {"dropout": 0.3}}}
    assert found(root, same, other) == [
        ("again", "bad", ("the same settings", "the same intervention: intervention:dropout"))
    ]


def test_more_than_was_tried_is_no_repeat(root):
    about = ("dataset:toy", "intervention:dropout", "intervention:film")
    note(root, "both", "worse", entities=about, proposal="x", title="Two things together")
    assert found(root, FILM) == []


def test_nearly_the_same_words_are_flagged(root):
    note(root, "bad", "worse", entities=(), proposal="x", title="Warm up the learning rate slowly")
    item = {"id": "y", "title": "Warm up the learning rate more slowly", "hypothesis": "h"}
    assert found(root, item) == [("y", "bad", ("nearly the same words",))]
    assert found(root, {**item, "title": "Warm up the cache"}) == []


def test_the_report_is_of_its_schema_and_names_what_is_new(root):
    note(root, "bad", "worse")
    new = {"id": "new", "title": "Something else", "hypothesis": "h"}
    with open_store(root) as store:
        report = screening(store, read_registry(root), [FILM, new], NOW)
    schema = read_yaml(root / "config/schemas/screening.schema.yaml")
    assert problems(report, schema) == []
    assert report["new"] == ["new"] and report["notes"] == 1
    (repeat,) = report["repeats"]
    assert repeat["seen"].startswith("FiLM conditioning (bad): completed, -0.0200 NDCG@10")
