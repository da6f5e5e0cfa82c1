"""What re-implementations of the network get wrong without noticing: its layers and its times.

The mistakes that parity alone would show are planted in test_parity_mutations.py.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
import torch
from tiny import START, batch_of, history, network
from torch import Tensor
from torch.nn import functional

from hstu.data.errors import HstuError
from hstu.kernels import relate, time_buckets
from hstu.models import Hstu, score_histories

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hstu.data.batches import History


@torch.no_grad()
def encoded(model: Hstu, *histories: History) -> Tensor:
    return model.encode(batch_of(*histories))


def norm(x: Tensor) -> Tensor:
    return (x - x.mean(-1, keepdim=True)) / (x.var(-1, correction=0, keepdim=True) + 1e-6).sqrt()


@torch.no_grad()
def test_one_event_by_hand() -> None:
    """One SiLU on the joint projection, none after it; the divisor is N; one joint norm; one
    residual; no feed-forward layer and no norm after the last block; the root of D on the input."""
    model = network(heads=1, dim=8, dqk=4, dv=4)
    block = model.blocks[0]
    block.uvqk.mul_(0.2)  # so that the norm does not undo the divisor
    x = model.items.weight[7] * 8**0.5 + model.positions[0]
    u, v, q, k = functional.silu(norm(x) @ block.uvqk).split([4, 4, 4, 4])
    bias = block.time_bias[27] + block.position_bias[21 - 1]  # an hour; N - 1, the distance 0
    mixed = functional.silu(q @ k + bias) / 21 * v
    x = x + (u * norm(mixed)) @ block.out.weight.T + block.out.bias
    found = encoded(model, history([7]))[0, 0]
    torch.testing.assert_close(found, x / x.norm(), atol=1e-6, rtol=0)


def test_no_parameter_beyond_the_five_of_a_block() -> None:
    """Neither norm has parameters, there is no feed-forward layer and no final norm, and the
    biases of a block are its own."""
    names = {name for name, _ in network(blocks=2).named_parameters()}
    parts = ("uvqk", "time_bias", "position_bias", "out.weight", "out.bias")
    blocks = {f"blocks.{block}.{part}" for block in (0, 1) for part in parts}
    assert names == {"items.weight", "positions", *blocks}


def test_the_size_of_the_published_networks() -> None:
    """MovieLens-1M has a row for every id up to 3952, and one for padding."""
    base = {"dim": 50, "heads": 1, "dqk": 50, "dv": 50, "history_length": 200}
    large = base | {"blocks": 8, "heads": 2, "dqk": 25, "dv": 25}
    for shape, expected in ((base | {"blocks": 2}, 234_400), (large, 313_000)):
        model = network(3952, **shape)
        assert sum(parameter.numel() for parameter in model.parameters()) == expected


def test_the_divisor_is_n_not_a_width_of_the_batch() -> None:
    """Nor the user's length: a longer mate changes nothing, another N does."""
    model = network()
    with torch.no_grad():
        model.blocks[0].uvqk.mul_(0.1)
    one, mate = history([3, 1, 4]), history([1, 5, 9, 2, 6, 5, 3, 5, 8, 9])
    alone, together = encoded(model, one)[0], encoded(model, one, mate)[0, :3]
    torch.testing.assert_close(together, alone, atol=1e-6, rtol=0)
    model.blocks[0].shape = model.blocks[0].shape._replace(divisor=10)
    assert (encoded(model, one)[0] - alone).abs().max() > 1e-3


def test_an_event_sees_no_later_item_and_one_later_time() -> None:
    """Event t knows events 0 .. t and the time of event t + 1; the last one that of the request.
    A softmax over all keys that is masked afterwards would let every event see the rest."""
    model = network(blocks=2)
    hours = [3600] * 6
    plain = encoded(model, history([1, 2, 3, 4, 5, 6], hours))[0]

    def moved(items: Sequence[int], gaps: Sequence[int]) -> list[bool]:
        gap = (encoded(model, history(items, gaps))[0] - plain).abs().amax(-1)
        return [bool(value > 1e-5) for value in gap]

    assert moved([1, 2, 3, 9, 5, 6], hours) == [False] * 3 + [True] * 3
    # Event 3 comes a day later, and so do those after it.
    assert moved([1, 2, 3, 4, 5, 6], [3600, 3600, 90_000, 3600, 3600, 3600])[:2] == [False] * 2
    assert moved([1, 2, 3, 4, 5, 6], [3600, 3600, 90_000, 3600, 3600, 3600])[2]
    assert moved([1, 2, 3, 4, 5, 6], [*hours[:5], 10**7]) == [False] * 5 + [True]


def test_the_query_side_has_the_next_time_the_key_side_its_own() -> None:
    """The bucket of (i, j) is of the time from event j to event i + 1, the diagonal too."""
    batch = batch_of(history([1, 2, 3], [60, 3600, 86_400]))
    buckets = time_buckets(batch.timestamps, batch.next_timestamps)[0]
    minute, hour, day = 13, 27, 37
    assert buckets.diagonal().tolist() == [minute, hour, day]
    assert buckets[2, 1] == int(math.log(90_000) / 0.301)
    related = relate(batch.timestamps, batch.next_timestamps, batch.lengths).buckets[0]
    assert torch.equal(related.long().tril(), buckets.tril())


def bucket(gap: int, start: int = START) -> int:
    stamps = torch.tensor([[start]])
    found = [
        int(time_buckets(stamps, stamps + gap)[0, 0, 0]),
        int(relate(stamps, stamps + gap, torch.tensor([1])).buckets[0, 0, 0]),
    ]
    assert found[0] == found[1]
    return found[0]


@pytest.mark.parametrize(
    ("gap", "expected"),
    {
        0: 0,
        1: 0,
        60: 13,
        3600: 27,
        86_400: 37,
        31_536_000: 57,
        315_360_000: 65,
        START: 70,
        6 * 10**16: 128,
        4 * 10**18: 128,
    }.items(),
)
def test_buckets_are_the_natural_logarithm_over_0_301(gap: int, expected: int) -> None:
    """Not the logarithm of base 2, for which 0.301 was perhaps meant; no bucket is beyond 128."""
    assert bucket(gap, start=0 if gap > 10**15 else START) == expected


def test_a_negative_gap_is_as_its_opposite() -> None:
    """The absolute value makes a wrong order silent, here as in the reference: the order is for
    the data to hold, which the split sorts and freezes."""
    for gap in (60, 3600, 86_400):
        assert bucket(-gap) == bucket(gap) > 0


def test_times_are_subtracted_as_whole_numbers() -> None:
    """In float32 a time of today is exact to two minutes, in float64 one in nanoseconds is not."""
    for start in (START, 1_700_000_000_000_000_000):
        assert [bucket(gap, start) for gap in (1, 2, 60)] == [0, 2, 13]


def test_bucket_boundaries_are_those_of_a_float32_logarithm() -> None:
    """A float64 logarithm gives a few integers next to a boundary another bucket."""
    gaps = torch.arange(1, 300_000)
    expected = (gaps.float().log() / 0.301).long().clamp(max=128)
    zeros = torch.zeros(1, 1, dtype=torch.int64)
    for part in gaps.split(50_000):
        found = time_buckets(zeros.expand(len(part), 1), part[:, None])[:, 0, 0]
        assert torch.equal(found, expected[part - 1])


def test_positions_count_from_the_oldest_kept_event() -> None:
    """Histories are padded on the right: the oldest event has position 0 whatever its batch."""
    model = network(history_length=4)
    with torch.no_grad():
        inputs = batch_of(history([9, 8, 7, 6, 5, 4]), history([3]), history_length=4)
        x = model.embed_inputs(inputs)
    assert inputs.items.tolist() == [[7, 6, 5, 4], [3, 0, 0, 0]]
    expected = model.items.weight[torch.tensor([7, 3])] * 8**0.5 + model.positions[0]
    torch.testing.assert_close(x[:, 0], expected)


def test_padding_reaches_nothing_and_learns_nothing() -> None:
    """The padding row is drawn like any other, and what it holds must not matter."""
    model = network(blocks=2)
    histories = history([3, 1, 4]), history([1, 5, 9, 2, 6])
    assert model.items.weight[0].any()
    before = encoded(model, *histories)
    assert not before[0, 3:].any()
    with torch.no_grad():
        model.items.weight[0] = 1e6
    assert torch.equal(encoded(model, *histories), before)
    model.encode(batch_of(*histories)).square()[..., :3].sum().backward()
    assert model.items.weight.grad is not None
    assert not model.items.weight.grad[0].any()
    assert model.items.weight.grad[1].any()


def test_garbage_in_padding_changes_nothing() -> None:
    model = network(blocks=2)
    clean = batch_of(history([3, 1, 4]), history([1, 5, 9, 2, 6]))
    rubbish = torch.where(clean.valid, clean.items, 7)
    stamps = torch.where(clean.valid, clean.timestamps, -5)
    dirty = clean._replace(items=rubbish, timestamps=stamps, next_timestamps=stamps * 0 + START)
    dirty = dirty._replace(
        next_timestamps=torch.where(clean.valid, clean.next_timestamps, dirty.next_timestamps)
    )
    with torch.no_grad():
        assert torch.equal(model.encode(dirty), model.encode(clean))


def test_the_corpus_is_scored_with_the_normalised_item_table() -> None:
    """Cosines, the temperature not among them, of the very vectors that histories are made of."""
    model = network()
    one = history([3, 1, 4])
    (scores,) = score_histories(model, [one])
    table = functional.normalize(model.items.weight[1:].detach(), dim=-1)
    expected = table @ encoded(model, one)[0, 2]
    torch.testing.assert_close(scores[0], expected, atol=1e-6, rtol=0)
    assert scores.abs().max() <= 1


def test_an_empty_history_is_an_error() -> None:
    """Its query would be all zeros, and its ranks noise."""
    with pytest.raises(HstuError, match="without events"):
        list(score_histories(network(), [history([1]), history([])]))
    with pytest.raises(HstuError, match="without events"):
        batch_of(history([]))


def test_a_long_history_keeps_its_newest_events() -> None:
    """Rows longer than the window are cut at the old end, not silently at the new one."""
    model = network(history_length=4)
    long, cut = history([9, 8, 7, 6, 5, 4]), history([7, 6, 5, 4])
    assert torch.equal(*(next(score_histories(model, [one]))[0] for one in (long, cut)))
