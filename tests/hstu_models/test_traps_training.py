"""What re-implementations of training get wrong without noticing: start, dropout, loss, data."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from small import config_data
from tiny import START, batch_of, history, items_of, network
from torch import Tensor
from torch.nn import functional

from hstu.config import parse_config, read_config
from hstu.data.batches import TrainingBatch, TrainingRows
from hstu.data.items import Items
from hstu.data.readers import Interactions
from hstu.data.split import leave_one_out
from hstu.evaluation.metrics import metrics, ranks
from hstu.kernels import native
from hstu.losses import sampled_softmax
from hstu.models import Hstu, build
from hstu.training import draw_negatives, make_optimizer, training_loss
from hstu.training.objective import NextItem

if TYPE_CHECKING:
    from torch import nn


BASE = Path(__file__).parents[2] / "config" / "experiments" / "base.yaml"


@pytest.fixture(scope="module")
def base() -> Hstu:
    """HSTU BASE as it starts, with the corpus of MovieLens-1M."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    config = read_config(BASE)
    return build(config, items_of(3883))


def near(values: Tensor, std: float, tolerance: float = 0.03) -> None:
    assert float(values.detach().std()) == pytest.approx(std, rel=tolerance)
    assert abs(float(values.detach().mean())) < 5 * std / values.numel() ** 0.5


def test_item_vectors_start_truncated(base: Hstu) -> None:
    """Normal of 0.02 cut at two deviations, which leaves 0.0176; the padding row is drawn too."""
    near(base.items.weight, 0.0176, 0.01)
    assert 0.0399 < float(base.items.weight.detach().abs().max()) <= 0.04
    assert base.items.weight[0].abs().min() > 0


def test_positions_start_as_xavier_normal(base: Hstu) -> None:
    """Of N + D, which overwrites what the input layer drew for them."""
    assert base.positions.shape == (211, 50)
    near(base.positions, math.sqrt(2 / (211 + 50)))


def test_blocks_start_as_the_reference_does(base: Hstu) -> None:
    """Projection and biases normal of 0.02, not truncated; output xavier-uniform, its bias with
    the default of a linear layer; no two blocks alike."""
    for block in base.blocks:
        near(block.uvqk, 0.02)
        assert block.uvqk.abs().max() > 0.06
        near(block.time_bias, 0.02, 0.2)
        near(block.position_bias, 0.02, 0.15)
        limit = math.sqrt(6 / (50 + 50))
        near(block.out.weight, limit / 3**0.5)
        assert 0.99 * limit < float(block.out.weight.detach().abs().max()) <= limit
        near(block.out.bias, 1 / (3 * 50) ** 0.5, 0.3)
        assert 0.8 / 50**0.5 < float(block.out.bias.detach().abs().max()) <= 1 / 50**0.5
    assert not torch.equal(base.blocks[0].time_bias, base.blocks[1].time_bias)


def dropped(module: nn.Module, run: Any) -> list[tuple[Tensor, Tensor]]:
    """What goes into the dropouts of a module and what comes out, in their order."""
    seen: list[tuple[Tensor, Tensor]] = []
    layers = [layer for layer in module.modules() if isinstance(layer, torch.nn.Dropout)]
    hooks = [
        layer.register_forward_hook(lambda _, given, made: seen.append((given[0], made)))
        for layer in layers
    ]
    run()
    for hook in hooks:
        hook.remove()
    return seen


@pytest.mark.parametrize("concat_ua", [False, True])
def test_dropout_is_on_the_input_and_before_the_output_layer(
    concat_ua: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the sum of item and position, and on the gated mixture; nothing is dropped from the
    attention itself."""
    calls: list[float] = []
    honest = functional.dropout

    def counted(x: Tensor, p: float, *rest: Any, **more: Any) -> Tensor:
        calls.append(p)
        return honest(x, p, *rest, **more)

    monkeypatch.setattr(functional, "dropout", counted)
    model = network(blocks=2, input_dropout=0.25, linear_dropout=0.5, concat_ua=concat_ua).train()
    batch = batch_of(*(history(range(1, 11)) for _ in range(200)))
    seen = dropped(model, lambda: model.encode(batch))
    assert calls == [0.25, 0.5, 0.5]
    tokens = model.items.weight[batch.items] * 8**0.5 + model.positions[:10]
    torch.testing.assert_close(seen[0][0], tokens)
    assert [given.shape[-1] for given, _ in seen] == [8, 24, 24] if concat_ua else [8, 8, 8]
    for (given, made), rate in zip(seen, calls, strict=True):
        kept = made != 0
        assert float((~kept).float().mean()) == pytest.approx(rate, abs=0.02)
        torch.testing.assert_close(made[kept], given[kept] / (1 - rate))
    assert calls == [0.25, 0.5, 0.5]


def rows_of(*lengths: int) -> TrainingRows:
    """A user for each length, with items of their own."""
    starts = np.cumsum([1, *lengths])
    histories = [
        history(range(start, start + size))
        for start, size in zip(starts.tolist(), lengths, strict=False)
    ]
    return TrainingRows(histories, np.arange(1, len(lengths) + 1), 10)


def test_an_untrained_loss_is_well_above_that_of_chance(base: Hstu) -> None:
    """About 8.5, not log(129) = 4.86: random directions differ by 20 / sqrt(50) in the logits."""
    random = np.random.default_rng(0)
    rows = [history(random.integers(1, 3884, 100).tolist()) for _ in range(16)]
    inputs = batch_of(*rows, history_length=200)
    targets = torch.from_numpy(random.integers(1, 3884, inputs.items.shape))
    batch = TrainingBatch(inputs, targets * inputs.valid)
    negatives = draw_negatives(batch, 3883, 128, torch.Generator().manual_seed(0))
    with torch.no_grad():
        loss = training_loss(base.eval(), batch, negatives).mean()
    assert float(loss) == pytest.approx(8.47, abs=0.15)


def test_every_event_but_the_first_is_a_target() -> None:
    """The target of event t is event t + 1, that of the last one the row's."""
    batch = rows_of(3, 1).batch([0, 1])
    assert batch.inputs.items.tolist() == [[1, 2, 3], [4, 0, 0]]
    assert batch.targets.tolist() == [[2, 3, 1], [2, 0, 0]]


def test_the_loss_is_a_mean_over_tokens_not_users() -> None:
    """A user of nine events weighs nine times as much as a user of one, in one group or several."""
    model = network()
    rows, draws = rows_of(9, 1, 4, 2, 7), torch.Generator().manual_seed(3)
    NextItem(model.config.train, 40).backward(model, rows, [0, 1, 2, 3, 4], draws)
    found = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    draws = torch.Generator().manual_seed(3)
    losses = []
    for group in rows.groups([0, 1, 2, 3, 4], 4):
        negatives = draw_negatives(group, 40, model.config.train.negatives, draws)
        losses.append(training_loss(model, group, negatives))
    assert sum(map(len, losses)) == 23
    (torch.cat(losses).sum() / 23).backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(found[name], parameter.grad, atol=1e-6, rtol=1e-5, msg=name)


def test_negatives_are_uniform_and_independent() -> None:
    """With replacement over all candidates for every token anew: those of its own history, its
    target and films that nobody rated among them."""
    batch = rows_of(10, 10, 10).batch([0, 1, 2])
    drawn = draw_negatives(batch, 50, 400, torch.Generator().manual_seed(0))
    assert drawn.shape == (30, 400)
    counts = torch.bincount(drawn.flatten(), minlength=51)
    assert counts[0] == 0
    assert len(counts) == 51
    expected = 30 * 400 / 50
    chi_square = float(((counts[1:] - expected) ** 2 / expected).sum())
    assert 20 < chi_square < 90  # 49 degrees of freedom
    assert all(len(row.unique()) < 400 for row in drawn)
    assert not torch.equal(drawn[0], drawn[1])
    once, twice = (draw_negatives(batch, 50, 4, torch.Generator().manual_seed(s)) for s in (1, 2))
    assert not torch.equal(once, twice)


def loss_of(query: Tensor, table: Tensor, target: int, negatives: list[int]) -> float:
    targets = torch.tensor([target])
    found = sampled_softmax(
        query[None], table[targets], table, targets, torch.tensor([negatives]), temperature=0.05
    )
    return float(found[0])


def test_the_temperature_divides_once() -> None:
    """Cosines times 20: with the target in the query's direction and the negatives across it."""
    table = torch.eye(3)
    expected = math.log1p(2 * math.exp(-20 * 0.1))
    query = torch.tensor([0.4, 0.3, 0.3])
    assert loss_of(query, table, 0, [1, 2]) == pytest.approx(expected, rel=1e-3)


def test_a_negative_that_is_the_target_does_not_count() -> None:
    """It is masked, with a number so low that it has no share, and no infinity comes of it."""
    table, query = torch.eye(4), torch.tensor([0.1, 0.2, 0.3, 0.4])
    without, twice = (loss_of(query, table, 1, drawn) for drawn in ([0, 2], [0, 1, 2, 1]))
    assert twice == pytest.approx(without, rel=1e-6)
    assert loss_of(query, table, 1, [1, 1, 1]) == 0.0
    assert loss_of(query, table, 1, [1, 0]) > 0.1


def test_ids_are_whole_numbers_beyond_two_to_the_24(monkeypatch: pytest.MonkeyPatch) -> None:
    """A float32 cannot tell 2^24 from 2^24 + 1."""
    big = 2**24
    ids = np.array([big, big + 1, big + 2, 2**53 + 1])
    items = Items(ids, ("",) * 4, np.zeros((4, 0), bool), (), np.zeros(4, np.int64))
    assert items.index(ids).tolist() == [1, 2, 3, 4]
    monkeypatch.setattr(native, "library", lambda: None)  # which would copy the table
    table = torch.ones(1, 1).expand(big + 3, 1)
    query = torch.ones(1)
    with torch.no_grad():
        assert loss_of(query, table, big + 1, [big, big + 2]) == pytest.approx(math.log(3))
        assert loss_of(query, table, big + 1, [big, big + 1]) == pytest.approx(math.log(2))


def test_the_optimiser_is_adamw_without_decay(base: Hstu) -> None:
    """Rate 1e-3, betas 0.9 and 0.98, epsilon 1e-8, no decay; no parameter is left out."""
    optimizer = make_optimizer(base, base.config.train)
    assert type(optimizer) is torch.optim.AdamW
    owned = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    assert {id(p) for p in owned} == {id(p) for p in base.parameters()}
    for group in optimizer.param_groups:
        assert (group["lr"], group["betas"], group["eps"]) == (1e-3, (0.9, 0.98), 1e-8)
        assert group["weight_decay"] == 0


def test_ties_in_time_keep_the_order_of_the_file() -> None:
    """Half of the events of MovieLens-1M tie with the one before; an unstable sort would choose
    another test item for a quarter of the users."""
    users = np.repeat(np.arange(300), 20)
    items = np.tile(np.arange(20), 300)
    times = START + np.tile(np.arange(20) // 7, 300)
    shuffled = np.random.default_rng(0).permutation(300 * 20)
    shuffled = shuffled[np.argsort(items[shuffled], kind="stable")]
    parts = leave_one_out(Interactions(users[shuffled], items[shuffled], times[shuffled]))
    assert parts["train"].items.tolist() == list(range(18)) * 300
    assert parts["validation"].items.tolist() == [18] * 300
    assert parts["test"].items.tolist() == [19] * 300


def test_a_target_in_its_own_history_has_a_rank() -> None:
    """Filtering it out would make every repeat a miss."""
    scores = np.array([[0.9, 0.8, 0.7]], np.float32)
    seen_rows, seen_items = np.array([0, 0]), np.array([0, 1])
    assert ranks(scores, np.array([1]), seen_rows, seen_items).tolist() == [1]


def test_a_corpus_smaller_than_the_cutoff_is_evaluated() -> None:
    scores = np.array([[0.9, 0.8, 0.7]], np.float32)
    rank = ranks(scores, np.array([2]), np.array([0, 0]), np.array([0, 1]))
    assert rank.tolist() == [1]
    assert metrics(rank, 3)["mrr"] == 1.0


def test_ratings_are_no_input() -> None:
    """Every event is a positive, whatever its rating: there is no place to put one."""
    assert Interactions.__annotations__.keys() == {"users", "items", "timestamps"}
    with pytest.raises(Exception, match="unknown key"):
        parse_config(config_data() | {"ratings": True}, source="test")
