"""The network against numbers of the reference implementation, array by array.

Every ``.npz`` of a folder is a case: of the folder that RANKEVOLVE_PARITY_DIR names when it is set,
else of the small ones that are kept here.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from parity_case import Case
from parity_measure import BACKENDS, compare, measurable, measure, use

from hstu.data.batches import Batch
from hstu.kernels.dispatch import implementation
from hstu.training import training_loss

if TYPE_CHECKING:
    from parity_measure import Measured

pytestmark = pytest.mark.parity

FOLDER = Path(
    os.environ.get("RANKEVOLVE_PARITY_DIR") or Path(__file__).parents[1] / "fixtures" / "parity"
)
CASES = {path.stem: path for path in sorted(FOLDER.glob("*.npz"))}


def arrays_of(name: str) -> list[str]:
    with np.load(CASES[name]) as file:
        return measurable(file.files, int(file["cfg"][4]))


ARRAYS = [(name, array) for name in CASES for array in arrays_of(name)]


@cache
def read(name: str) -> Case:
    return Case.read(CASES[name])


@cache
def measured(name: str, backend: str) -> Measured:
    assert implementation(torch.device("cpu")) == backend
    return measure(read(name))


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    use(request.param, monkeypatch)
    return str(request.param)


def test_the_folder_holds_cases() -> None:
    assert CASES, f"no .npz file in {FOLDER}"
    for name in CASES:
        assert {"encoded", "loss"} <= set(arrays_of(name)), f"{name} holds too little to compare"


@pytest.mark.parametrize(("name", "array"), ARRAYS, ids=[f"{n}-{a}" for n, a in ARRAYS])
def test_the_array_agrees(name: str, array: str, backend: str) -> None:
    problem = compare(read(name), array, measured(name, backend)[array])
    assert problem is None, problem


@pytest.mark.parametrize("name", CASES)
def test_a_batch_of_events_agrees(name: str, backend: str) -> None:
    """Made of events as training makes it, a batch is narrower than N, and nothing changes."""
    case = read(name)
    model, batch = case.model(), case.collated()
    width = batch.inputs.width
    assert width == max(case.lengths)
    with torch.no_grad():
        encoded = model.encode(batch.inputs).numpy()
    expected = case.arrays["encoded"][:, :width]
    np.testing.assert_allclose(encoded, expected, atol=case.tolerance.forward, rtol=0)
    if {"negative_ids", "loss_per_token"} <= set(case.arrays):
        losses = training_loss(model, batch, case.negatives()).detach().numpy()
        assert compare(case, "loss_per_token", losses) is None


@pytest.mark.parametrize("name", CASES)
def test_a_user_alone_agrees(name: str, backend: str) -> None:
    """Neither batch mates nor the batch's width matter."""
    case = read(name)
    model, inputs = case.model(), case.collated().inputs
    for row, length in enumerate(case.lengths):
        alone = Batch(
            *(part[row : row + 1, :length] for part in inputs[:3]), inputs.lengths[row : row + 1]
        )
        with torch.no_grad():
            query = model.query(alone).numpy()[0]
        expected = case.arrays["encoded"][row, length - 1]
        np.testing.assert_allclose(query, expected, atol=case.tolerance.forward, rtol=0)
