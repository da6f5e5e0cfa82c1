"""Each classic mistake of a re-implementation turns parity red."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import parity_reference as plain
import pytest
import torch
from parity_case import Case
from parity_measure import disagreements, measure, use
from torch.nn import functional

import hstu.kernels.attention
import hstu.kernels.dispatch
import hstu.models.hstu
import hstu.training.objective
from hstu.kernels import Bias, Relation, Shape
from hstu.models.hstu import Hstu

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from hstu.data.batches import Batch

    Patch = Callable[[pytest.MonkeyPatch], None]

FIXTURES = Path(__file__).parents[1] / "fixtures" / "parity"
# One head, attention so small that the layer norm after it does not undo its divisor.
SENSITIVE = plain.Shape(heads=1, dqk=12, dv=12, attention_std=0.02)
CASES = ("case1_ragged", "case2_long_gaps", "sensitive")


def attention(change: Callable[..., dict[str, Any]]) -> Patch:
    """``change`` gets attention's arguments by name and returns those that differ."""
    honest = hstu.kernels.dispatch.attend

    def changed(
        q: Tensor, k: Tensor, v: Tensor, bias: Bias, relation: Relation, **rest: Any
    ) -> Any:
        given = {"q": q, "k": k, "v": v, "bias": bias, "relation": relation} | rest
        return honest(**(given | change(**given)))

    return lambda patch: patch.setattr(hstu.kernels.dispatch, "attend", changed)


def mixture(change: Callable[[Tensor, Relation, int], Tensor]) -> Patch:
    """``change`` gets what attention mixed, the relation and N, and returns another mixture."""
    honest = hstu.kernels.dispatch.attend

    def changed(
        q: Tensor, k: Tensor, v: Tensor, bias: Bias, relation: Relation, **rest: Any
    ) -> Any:
        mixed = honest(q, k, v, bias, relation, **rest)
        return change(mixed.unflatten(-1, v.shape[2:]), relation, rest["divisor"]).flatten(2)

    return lambda patch: patch.setattr(hstu.kernels.dispatch, "attend", changed)


def times(change: Callable[[Batch], Batch]) -> Patch:
    """``change`` gets a batch and returns it with other times."""
    honest = Hstu.encode
    return lambda patch: patch.setattr(
        Hstu, "encode", lambda self, batch: honest(self, change(batch))
    )


def target_time_unknown(batch: Batch) -> Batch:
    nexts = batch.next_timestamps.clone()
    nexts[torch.arange(len(nexts)), batch.lengths - 1] = 0
    return batch._replace(next_timestamps=nexts)


def by_length(mixed: Tensor, relation: Relation, divisor: int) -> Tensor:
    return mixed * divisor / relation.lengths[:, None, None, None]


def by_longest(mixed: Tensor, relation: Relation, divisor: int) -> Tensor:
    return mixed * divisor / relation.lengths.max()


def norm_per_head(mixed: Tensor, relation: Relation, divisor: int) -> Tensor:
    return functional.layer_norm(mixed, mixed.shape[-1:], eps=1e-6)


def input_not_scaled(patch: pytest.MonkeyPatch) -> None:
    honest = Hstu.embed_inputs

    def changed(self: Hstu, batch: Batch) -> Tensor:
        x, places = honest(self, batch), self.positions[: batch.width]
        return ((x - places) / self.config.model.dim**0.5 + places) * batch.valid[..., None]

    patch.setattr(Hstu, "embed_inputs", changed)


def gate(change: Callable[[Tensor, Tensor], Tensor]) -> Patch:
    """``change`` gets u and what it was before the SiLU, and returns another u."""
    honest = hstu.kernels.attention.split

    def changed(projected: Tensor, shape: Shape) -> tuple[Tensor, ...]:
        u, *others = honest(projected, shape)
        return change(u, projected[..., : shape.heads * shape.dv]), *others

    return lambda patch: patch.setattr(hstu.kernels.attention, "split", changed)


def no_collision_mask(patch: pytest.MonkeyPatch) -> None:
    honest = hstu.training.objective.sampled_softmax

    def changed(q: Tensor, p: Tensor, t: Tensor, targets: Tensor, n: Tensor, **rest: Any) -> Tensor:
        return honest(q, p, t, torch.full_like(targets, -1), n, **rest)

    patch.setattr(hstu.training.objective, "sampled_softmax", changed)


def base_two(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(hstu.kernels.attention, "_BUCKET_WIDTH", math.log(2))


MUTATIONS: dict[str, Patch] = {
    "divided by the user's length": mixture(by_length),
    "divided by the batch's longest length": mixture(by_longest),
    "this event's time instead of the next one's": times(
        lambda batch: batch._replace(next_timestamps=batch.timestamps)
    ),
    "the target's time left at 0": times(target_time_unknown),
    "buckets of base 2": base_two,
    "layer norm per head": mixture(norm_per_head),
    "q and k swapped": attention(lambda q, k, **_: {"q": k, "k": q}),
    "position bias mirrored": attention(
        lambda bias, **_: {"bias": Bias(bias.time, bias.position.flip(0))}
    ),
    "scores divided by the root of d": attention(lambda q, **_: {"q": q / q.shape[-1] ** 0.5}),
    "no root of D on the input": input_not_scaled,
    "u without SiLU": gate(lambda _, before: before),
    "SiLU twice on u": gate(lambda u, _: functional.silu(u)),
    "no collision mask": no_collision_mask,
}
# The arrays that a mutation moves first; where there is nothing to see, there is none.
FIRST = {"no collision mask": "loss_per_token"}
NOTHING_TO_SEE = {("layer norm per head", "sensitive")}
TRIALS = [(m, c) for m in MUTATIONS for c in CASES if (m, c) not in NOTHING_TO_SEE]


@cache
def case_of(name: str) -> Case:
    if name == "sensitive":
        return Case(plain.make(SENSITIVE, seed=0))
    return Case.read(FIXTURES / f"{name}.npz")


@pytest.fixture(autouse=True)
def torch_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mistakes are planted in what torch computes."""
    use("torch", monkeypatch)


@pytest.mark.parametrize("name", CASES)
def test_the_model_itself_is_green(name: str) -> None:
    assert disagreements(case_of(name), measure(case_of(name))) == {}


@pytest.mark.parametrize(("mutation", "name"), TRIALS)
def test_the_mutation_turns_red(mutation: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTATIONS[mutation](monkeypatch)
    case = case_of(name)
    found = disagreements(case, measure(case))
    assert FIRST.get(mutation, "encoded") in found, found
