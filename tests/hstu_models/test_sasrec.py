"""The control: SASRec's layers between the input, output and loss of HSTU."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from small import config_data, make_split
from tiny import batch_of, history, items_of, network
from torch import Tensor, nn
from torch.nn import functional

from hstu.config import parse_config, read_config
from hstu.data.errors import ExitCode, HstuError
from hstu.data.items import Items
from hstu.models import build, load, score_histories
from hstu.preflight.run import preflight
from hstu.training import train

if TYPE_CHECKING:
    from hstu.models import Hstu
    from hstu.models.sasrec import SasrecBlock

EXPERIMENTS = Path(__file__).parents[2] / "config" / "experiments"
SASREC = {"encoder": "sasrec", "ffn": 6}


def by_torch(block: SasrecBlock, x: Tensor) -> Tensor:
    """The layer as the reference composes it: torch's attention module and 1 x 1 convolutions."""
    dim, ffn = block.out.in_features, block.inner.out_features
    attention = nn.MultiheadAttention(dim, block.heads, batch_first=True).double()
    inner, outer = nn.Conv1d(dim, ffn, 1).double(), nn.Conv1d(ffn, dim, 1).double()
    attention.load_state_dict(
        {
            "in_proj_weight": block.qkv,
            "in_proj_bias": block.qkv_bias,
            "out_proj.weight": block.out.weight,
            "out_proj.bias": block.out.bias,
        }
    )
    for conv, layer in ((inner, block.inner), (outer, block.outer)):
        conv.load_state_dict({"weight": layer.weight[..., None], "bias": layer.bias})
    query = functional.layer_norm(x, [dim], eps=1e-8)
    mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
    mixed, _ = attention(query, x, x, attn_mask=mask)
    y = functional.layer_norm(query + mixed, [dim], eps=1e-8)
    made: Tensor = outer(inner(y.transpose(1, 2)).relu()).transpose(1, 2) + y
    return made


@pytest.mark.parametrize("heads", [1, 2, 4])
@torch.no_grad()
def test_the_network_is_that_of_torchs_own_parts(heads: int) -> None:
    shape = {"heads": heads, "dqk": 8 // heads, "dv": 8 // heads, "blocks": 3}
    model = network(**SASREC, **shape).double()
    batch = batch_of(history([3, 1, 4, 1, 5]), history([9, 2]), history([6]))
    x = model.items(batch.items) * 8**0.5 + model.positions[:5]
    valid = batch.valid[..., None]
    x = x * valid
    for block in model.blocks:
        x = by_torch(block, x) * valid
    expected = x / torch.linalg.vector_norm(x, dim=-1, keepdim=True).clamp(min=1e-6)
    torch.testing.assert_close(model.encode(batch), expected, atol=1e-12, rtol=0)


@torch.no_grad()
def test_it_looks_at_nothing_newer_and_at_no_time() -> None:
    model = network(**SASREC, blocks=2)
    plain = model.encode(batch_of(history([1, 2, 3, 4, 5])))
    edited = model.encode(batch_of(history([1, 2, 3, 9, 5])))
    assert torch.equal(edited[0, :3], plain[0, :3])
    assert (edited[0, 3:] - plain[0, 3:]).abs().amax(-1).min() > 1e-4
    later = model.encode(batch_of(history([1, 2, 3, 4, 5], [7, 10**6, 1, 0, 10**8])))
    assert torch.equal(later, plain)


def test_it_starts_as_the_reference_does() -> None:
    """Positions keep what the input layer draws; weights of the layers are xavier-normal."""
    torch.manual_seed(0)
    model = build(read_config(EXPERIMENTS / "sasrec.yaml"), items_of(100))
    positions = model.positions.detach()
    assert float(positions.std()) == pytest.approx(0.88 / math.sqrt(50), rel=0.03)
    assert positions.abs().max() <= 2 / math.sqrt(50)
    for block in model.blocks:
        square = (block.out, block.inner, block.outer)
        weights = [(block.qkv, 200), *((layer.weight, 100) for layer in square)]
        for weight, fans in weights:
            assert float(weight.detach().std()) == pytest.approx(math.sqrt(2 / fans), rel=0.05)
            assert weight.detach().abs().max() > 3 * math.sqrt(2 / fans)
        assert not block.qkv_bias.any()
        assert not block.out.bias.any()
        for layer in (block.inner, block.outer):
            assert 0.5 / 50**0.5 < float(layer.bias.detach().abs().max()) <= 1 / 50**0.5


def test_dropout_is_on_attention_and_twice_in_the_feed_forward_part() -> None:
    model = network(**SASREC, input_dropout=0.25, linear_dropout=0.5).train()
    shapes: list[tuple[tuple[int, ...], float]] = []

    def seen(layer: nn.Dropout, given: tuple[Tensor, ...], _made: Tensor) -> None:
        shapes.append((tuple(given[0].shape), layer.p))

    for layer in model.modules():
        if isinstance(layer, nn.Dropout):
            layer.register_forward_hook(seen)
    model.encode(batch_of(history([1, 2, 3])))
    assert shapes == [
        ((1, 3, 8), 0.25),
        ((1, 2, 3, 3), 0.5),
        ((1, 3, 6), 0.5),
        ((1, 3, 8), 0.5),
    ]


def test_the_shipped_control_differs_from_hstu_in_its_layers_alone() -> None:
    base, control = (read_config(EXPERIMENTS / f"{name}.yaml") for name in ("base", "sasrec"))
    assert (control.model.encoder, control.model.ffn) == ("sasrec", 50)
    assert replace(control.model, encoder="hstu", ffn=None) == base.model
    assert control.train == base.train


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"encoder": "sasrec"}, "model.ffn: error: encoder sasrec needs a width"),
        ({"encoder": "sasrec", "ffn": 0}, "model.ffn: error: encoder sasrec needs a width"),
        ({"ffn": 8}, "model.ffn: error: is for encoder sasrec"),
        (SASREC | {"concat_ua": True}, "model.concat_ua: error: is for encoder hstu"),
        (SASREC | {"dqk": 5}, "model.dqk: error: must be dim / heads"),
        (SASREC | {"dv": 8}, "model.dv: error: must be dim / heads"),
        ({"encoder": "gru"}, "model.encoder: error: must be one of hstu, sasrec"),
    ],
)
def test_a_shape_that_it_does_not_have_is_refused(model: dict[str, Any], message: str) -> None:
    data = config_data()
    data["model"] |= model
    with pytest.raises(HstuError) as caught:
        parse_config(data, source="x.yaml")
    assert message in str(caught.value)


def test_an_intervention_on_attention_is_refused() -> None:
    """Its terms would be dropped without a word."""
    data = config_data()
    data["model"] |= SASREC
    data["interventions"] = {"elapsed_decay": {}}
    with pytest.raises(HstuError, match="changes HSTU's attention") as caught:
        build(parse_config(data, source="x.yaml"), items_of(10))
    assert caught.value.exit_code == ExitCode.CONFIG
    assert "interventions.elapsed_decay" in str(caught.value)
    data["interventions"] = {"film": {}}
    build(parse_config(data, source="x.yaml"), items_of(10))


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    return make_split(tmp_path_factory.mktemp("sasrec"))


def test_it_trains_and_its_checkpoint_scores_alike(split: Path, tmp_path: Path) -> None:
    data = config_data(epochs=6)
    data["model"] |= SASREC
    config = parse_config(data, source="x.yaml")
    made: Hstu = train(config, split, tmp_path, seed=1, threads=1)
    lines = (tmp_path / "curve.tsv").read_text().splitlines()
    place = lines[0].split("\t").index("loss")
    losses = [float(line.split("\t")[place]) for line in lines[1:]]
    assert losses[-1] < 0.9 * losses[0]
    items = Items.read(split / "items.parquet")
    kept, histories = load(tmp_path, items), [history([1, 2, 3])]
    found, expected = (next(score_histories(model, histories)) for model in (kept, made))
    assert np.array_equal(found.numpy(), expected.numpy())


def test_it_passes_preflight(split: Path, tmp_path: Path) -> None:
    text = (EXPERIMENTS / "synthetic.yaml").read_text()
    path = tmp_path / "sasrec.yaml"
    path.write_text(text.replace("model:\n", "model:\n  encoder: sasrec\n  ffn: 16\n"))
    report = preflight(path, split)
    assert [entry for entry in report["invariants"] if entry["status"] != "passed"] == []
