"""The compiled kernels compute what their torch forms say, for any shape, lengths and threads."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.nn import functional

from hstu.kernels import Bias, Relation, Shape, attention, native, native_attention
from hstu.kernels.dispatch import implementation
from hstu.losses import sampled_softmax

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor

needs_compiler = pytest.mark.skipif(native.library() is None, reason="no C compiler here")
sizes = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture
def threads() -> object:
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


class Case:
    """Random tokens of a batch and a random bias."""

    def __init__(self, shape: Shape, lengths: list[int], seed: int) -> None:
        random = torch.Generator().manual_seed(seed)
        users, width = len(lengths), max(lengths)
        inner = shape.heads * 2 * (shape.dv + shape.dqk)
        self.shape, self.lengths = shape, torch.tensor(lengths)
        self.projected = torch.randn(users, width, inner, generator=random)
        self.bias = [torch.randn(n, generator=random) for n in (129, 2 * shape.divisor - 1)]
        gaps = torch.randint(0, 10**7, (users, width + 1), generator=random)
        self.times = gaps.cumsum(1)
        self.grad = torch.randn(users, width, shape.heads * shape.dv, generator=random)
        self.valid = torch.arange(width) < self.lengths[:, None]

    def run(self, compiled: bool) -> tuple[Tensor, ...]:
        """Valid outputs and the gradients of tokens and bias."""
        inputs = [part.clone().requires_grad_() for part in (self.projected, *self.bias)]
        now, following = self.times[:, :-1], self.times[:, 1:]
        if compiled:
            buckets = native_attention.time_buckets(now, following, self.lengths)
            form = native_attention.gated_attention
        else:
            buckets = attention.time_buckets(now, following)
            form = attention.gated_attention
        relation = Relation(buckets, self.lengths)
        out = form(inputs[0], Bias(*inputs[1:]), relation, self.shape)
        out.backward(self.grad * self.valid[..., None])
        return out.detach()[self.valid], *(part.grad for part in inputs)


def close(ours: Tensor, theirs: Tensor) -> None:
    # The norm takes away most of what a short history sends back: what is left is rounding.
    slack = 1e-6 + 3e-5 * float(theirs.abs().max())
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=slack)


@needs_compiler
@sizes
@given(
    heads=st.integers(1, 3),
    dqk=st.integers(1, 33),
    dv=st.integers(1, 33),
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=5),
    workers=st.integers(1, 3),
    seed=st.integers(0, 1000),
)
def test_attention_of_any_shape(
    heads: int, dqk: int, dv: int, lengths: list[int], workers: int, seed: int, threads: object
) -> None:
    threads(workers)  # type: ignore[operator]
    case = Case(Shape(heads, dqk, dv, divisor=41), lengths, seed)
    for ours, theirs in zip(case.run(compiled=True), case.run(compiled=False), strict=True):
        close(ours, theirs)


@needs_compiler
def test_padding_is_neither_read_nor_written() -> None:
    case = Case(Shape(2, 5, 7, divisor=20), [3, 9, 1], 0)
    clean = case.run(compiled=True)
    case.projected[~case.valid] = torch.nan
    dirty = case.run(compiled=True)
    assert all(torch.equal(a, b) for a, b in zip(clean, dirty, strict=True))
    assert not dirty[1][~case.valid].any()


@needs_compiler
def test_the_buckets_are_those_of_the_formula_at_every_boundary() -> None:
    starts = native_attention._bucket_starts()[1:]
    gaps = torch.cat([starts - 1, starts, starts + 1, -starts, torch.tensor([0, 1, 2**62])])
    now = torch.zeros(len(gaps), 1, dtype=torch.int64)
    buckets = native_attention.time_buckets(now, gaps[:, None], torch.ones(len(gaps), dtype=int))
    assert torch.equal(buckets.long(), attention.time_buckets(now, gaps[:, None]))


@needs_compiler
def test_the_same_threads_repeat_to_the_bit(threads: object) -> None:
    threads(2)  # type: ignore[operator]
    case = Case(Shape(2, 25, 25, divisor=211), list(range(1, 90, 4)), 3)
    first, second = case.run(compiled=True), case.run(compiled=True)
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def losses(
    monkeypatch: pytest.MonkeyPatch, compiled: bool, dim: int, draws: int, tokens: int
) -> tuple[Tensor, ...]:
    random = torch.Generator().manual_seed(dim)
    items = 37
    queries, table = (torch.randn(n, dim, generator=random) for n in (tokens, items + 1))
    queries, table = (functional.normalize(part, dim=-1) for part in (queries, table))
    targets = torch.randint(1, items + 1, (tokens,), generator=random)
    negatives = torch.randint(1, items + 1, (tokens, draws), generator=random)
    inputs = [part.clone().requires_grad_() for part in (queries, table[targets] * 0.5, table)]
    if not compiled:
        monkeypatch.setattr(native, "library", lambda: None)
    loss = sampled_softmax(*inputs, targets, negatives, temperature=0.05)
    (loss * torch.rand(tokens, generator=random)).sum().backward()
    monkeypatch.undo()
    return loss.detach(), *(part.grad for part in inputs)


@needs_compiler
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize(("dim", "draws"), [(1, 1), (8, 16), (50, 128), (64, 9), (130, 40)])
def test_the_sampled_softmax_of_any_width(
    dim: int, draws: int, workers: int, threads: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The positives differ from the table's rows on purpose: they are an input of their own."""
    threads(workers)  # type: ignore[operator]
    ours = losses(monkeypatch, True, dim, draws, tokens=21)
    theirs = losses(monkeypatch, False, dim, draws, tokens=21)
    for mine, reference in zip(ours, theirs, strict=True):
        close(mine, reference)


@pytest.mark.parametrize("form", native.TWINS)
def test_the_kernels_stand_for_the_forms_as_they_are(form: str) -> None:
    """After a change of a form: make the kernels agree (the tests above), then enter the digest."""
    assert native.digest(form) == native.TWINS[form]


@needs_compiler
@pytest.mark.parametrize("form", native.TWINS)
def test_an_edited_form_is_what_runs(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert native.stands_for(form)
    cpu = torch.device("cpu")
    assert implementation(cpu) == "native"
    monkeypatch.setitem(native.TWINS, form, "0" * 64)
    assert implementation(cpu) == ("torch" if form == "kernels/attention.py" else "native")
    assert not native.stands_for(form)
    assert not native.usable(form, torch.ones(1))


ASK = """
import torch
from hstu.kernels.dispatch import implementation
print(implementation(torch.device("cpu")))
"""


def asked(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Which kernels a new process has, its build folder being ``folder``."""
    code = f"import sys; sys.prefix = {str(folder)!r}\n{ASK}"
    return subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@needs_compiler
def test_the_build_is_made_once_and_found_again(tmp_path: Path) -> None:
    assert asked(tmp_path).stdout.split() == ["native"]
    (built,) = (tmp_path / "lib" / "rankevolve").iterdir()
    made = built.stat().st_mtime_ns
    assert asked(tmp_path).stdout.split() == ["native"]
    assert built.stat().st_mtime_ns == made


def test_without_a_compiler_torch_takes_its_place(tmp_path: Path) -> None:
    done = asked(tmp_path, CC="no-such-compiler")
    assert done.stdout.split() == ["torch"]


def test_a_compiler_that_fails_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    done = asked(tmp_path, CC="false")
    assert done.stdout.split() == ["torch"]
    assert "does not compile, torch takes its place" in done.stderr
    assert not list((tmp_path / "lib" / "rankevolve").iterdir())


@pytest.fixture
def quick(tmp_path: Path) -> str:
    """A ``CC`` of two words that builds a library of one function."""
    script = tmp_path / "quick-cc"
    script.write_text(
        '#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\n'
        "echo 'long hstu_lanes(void) { return 8; }' | cc -shared -fPIC -x c -o \"$2\" -\n"
    )
    script.chmod(0o755)
    return f"{script} -m64"


@needs_compiler
def test_a_compiler_with_arguments_builds_what_other_users_can_read(
    tmp_path: Path, quick: str
) -> None:
    assert asked(tmp_path, CC=quick).stdout.split() == ["native"]
    (built,) = (tmp_path / "lib" / "rankevolve").iterdir()
    assert built.stat().st_mode & 0o777 == 0o755


@needs_compiler
def test_a_build_that_cannot_be_loaded_is_made_anew(tmp_path: Path, quick: str) -> None:
    asked(tmp_path, CC=quick)
    (built,) = (tmp_path / "lib" / "rankevolve").iterdir()
    whole = built.read_bytes()
    built.write_bytes(whole[:99])
    done = asked(tmp_path, CC=quick)
    assert (done.stdout.split(), done.stderr) == (["native"], "")
    assert built.stat().st_size == len(whole)


def test_a_compiler_that_makes_nothing_leaves_torch(tmp_path: Path) -> None:
    done = asked(tmp_path, CC="true")
    assert done.stdout.split() == ["torch"]
    assert "cannot be loaded, torch takes their place" in done.stderr
    assert not list((tmp_path / "lib" / "rankevolve").iterdir())


def test_kernels_that_are_asked_for_and_missing_are_an_error(tmp_path: Path) -> None:
    done = asked(tmp_path, HSTU_KERNELS="native", CC="no-such-compiler")
    assert "no C compiler built" in done.stderr
    assert "HstuError" in done.stderr


def test_the_environment_chooses(tmp_path: Path) -> None:
    assert asked(tmp_path, HSTU_KERNELS="torch").stdout.split() == ["torch"]
    assert "must be auto, native or torch" in asked(tmp_path, HSTU_KERNELS="fast").stderr
    assert "no C compiler" in asked(tmp_path, HSTU_KERNELS="native", CC="absent").stderr
