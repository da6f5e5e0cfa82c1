"""The Triton programs against the torch form, in Triton's interpreter: no GPU is needed."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from hstu.kernels import attend, dispatch

HERE = Path(__file__).parent
FORWARD, BACKWARD = 1e-5, 1e-4
BFLOAT16 = 2e-2  # eight bits of mantissa
PROGRAMS = ("mix", "query_gradients", "key_value_gradients", "score_gradients", "bucket_sums")

pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("triton") is None, reason="Triton is not installed"
    ),
    pytest.mark.xdist_group("triton"),
]


def run(script: str, *arguments: str, **environment: str) -> Any:
    done = subprocess.run(
        [sys.executable, str(HERE / script), *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def interpreted() -> Any:
    return run("triton_cases.py", TRITON_INTERPRET="1")


@pytest.mark.parametrize("case", ["ragged", "one", "wide", "unbiased"])
def test_results_are_those_of_the_torch_form(interpreted: Any, case: str) -> None:
    found = interpreted["differences"][case]
    assert found.pop("out") < FORWARD
    assert all(gap < BACKWARD for gap in found.values()), found


def test_bfloat16_rounds_inputs_and_results_only(interpreted: Any) -> None:
    found = interpreted["differences"]["bfloat16"]
    assert all(gap < BFLOAT16 for gap in found.values()), found


def test_equal_inputs_give_equal_bits(interpreted: Any) -> None:
    assert interpreted["repeats"]


def test_every_program_compiles_for_a_gpu(tmp_path: Path) -> None:
    """The interpreter runs Python that the compiler refuses."""
    on_chip = run("triton_compiled.py", *PROGRAMS, TRITON_CACHE_DIR=str(tmp_path))
    assert set(on_chip) == set(PROGRAMS)


@pytest.mark.parametrize(
    ("cuda", "term", "chosen"), [(True, None, True), (True, 1.0, False), (False, None, False)]
)
def test_triton_is_chosen_on_cuda_without_terms_only(
    monkeypatch: pytest.MonkeyPatch, cuda: bool, term: float | None, chosen: bool
) -> None:
    by_triton = SimpleNamespace(takes=lambda *_: True, attend=lambda *_: torch.ones(1))
    monkeypatch.setattr(dispatch, "_triton_attention", lambda: by_triton)
    monkeypatch.setattr(dispatch.attention, "attend", lambda *_, **__: torch.zeros(1))
    q: Any = SimpleNamespace(is_cuda=cuda)
    relation: Any = None
    out: Any = attend(q, q, q, None, relation, divisor=5, factor=term)
    assert bool(out) == chosen
