"""Parity holds for whatever shape a fixture has; fixtures are made by the plain equations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import parity_reference as plain
import pytest
from parity_case import Case
from parity_measure import BACKENDS, compare, disagreements, measurable, measure, use

FIXTURES = Path(__file__).parents[1] / "fixtures" / "parity"
SHAPES = {
    "float64": plain.Shape(double=True),
    "concat_ua": plain.Shape(concat_ua=True),
    "concat_ua, one head, float64": plain.Shape(heads=1, concat_ua=True, double=True),
    "three heads": plain.Shape(dim=10, heads=3, dqk=2, dv=5, blocks=1),
    "one token": plain.Shape(lengths=(1,), blocks=3, negatives=3),
    "full window, no room": plain.Shape(history=5, out_len=1, lengths=(5, 4, 5, 2)),
    "many items, few negatives": plain.Shape(largest_id=150, corpus=140, negatives=2),
    "items that are no candidates": plain.Shape(corpus=7, outsiders=True, negatives=12),
    "nanoseconds": plain.Shape(longest_gap=3e17),
    "small attention": plain.Shape(heads=1, dqk=12, dv=12, attention_std=0.05),
    "one wide head": plain.Shape(dim=7, heads=1, dqk=20, dv=33, double=True),
}


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    use(request.param, monkeypatch)


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.npz")), ids=lambda path: path.stem)
def test_the_plain_equations_give_the_reference_numbers(path: Path) -> None:
    """So a fixture that is made with them is as good as one of the reference."""
    case = Case.read(path)
    again = plain.results(case.arrays)
    names = measurable(case.arrays, case.blocks)
    assert [problem for name in names if (problem := compare(case, name, again[name]))] == []


@pytest.mark.parametrize("shape", SHAPES)
def test_any_shape_agrees(shape: str, backend: None, tmp_path: Path) -> None:
    arrays = plain.make(SHAPES[shape], seed=list(SHAPES).index(shape))
    np.savez(tmp_path / "made.npz", **arrays)
    case = Case.read(tmp_path / "made.npz")
    unchecked = {"cfg", "lengths", "all_item_ids", "timestamps_N", "ids_N_train", "negative_ids"}
    checked = set(measurable(arrays, case.blocks))
    left = {name for name in arrays if not name.startswith(("w.", "hist_", "target_"))} - checked
    assert left == unchecked | {"token_weights"}
    assert disagreements(case, measure(case)) == {}


def test_other_arrays_and_missing_ones_do_no_harm() -> None:
    arrays = plain.make(SHAPES["concat_ua"], seed=1)
    for name in (
        "encoded_train",
        "bias.block1",
        "token_weights",
        "g.pos_emb",
        "rank_seen_filtered",
    ):
        del arrays[name]
    case = Case(arrays | {"something_else": np.zeros(3)})
    names = measurable(case.arrays, case.blocks)
    assert not {"encoded_train", "something_else", "loss_weighted", "g.pos_emb"} & set(names)
    assert "gnorm.pos_emb" in names
    assert disagreements(case, measure(case)) == {}
    for name in ("negative_ids", "loss", "g.item_emb"):
        del case.arrays[name]
    assert "encoded" in measurable(case.arrays, case.blocks)
    assert disagreements(case, measure(case)) == {}


def test_a_wrong_number_is_seen_in_every_array() -> None:
    case = Case(plain.make(plain.Shape(), seed=0))
    names = measurable(case.arrays, case.blocks)
    assert len(names) > 40
    for name in names:
        right = case.arrays[name]
        assert compare(case, name, right) is None
        wrong = np.array(right)
        place = np.unravel_index(np.abs(wrong * 1.0).argmax(), wrong.shape)
        wrong[place] = ~wrong[place] if wrong.dtype == bool else wrong[place] * 1.001 + 1
        assert compare(case, name, wrong) is not None, name
