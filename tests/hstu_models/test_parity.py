"""The network, its loss and its gradients against numbers of the reference implementation."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hstu.data.batches import Batch, TrainingBatch
from hstu.data.items import Items
from hstu.kernels import relative_bias, time_buckets
from hstu.models import ExperimentConfig, Hstu, ModelConfig, TrainConfig, build
from hstu.training import training_loss

FIXTURES = Path(__file__).parent.parent / "fixtures" / "parity"
FOLDERS = [FIXTURES, *map(Path, filter(None, [os.environ.get("RANKEVOLVE_PARITY_DIR")]))]
CASES = {path.stem: path for folder in FOLDERS for path in sorted(folder.glob("*.npz"))}


class Case:
    """A fixture file, its ids mapped to dense item indices."""

    def __init__(self, path: Path) -> None:
        self.arrays = dict(np.load(path))
        dim, heads, dqk, dv, blocks, history, out_len, self.width = self.arrays["cfg"][:8].tolist()
        ids = self.arrays["all_item_ids"]
        self.items = Items(
            ids,
            ("",) * len(ids),
            np.zeros((len(ids), 0), bool),
            (),
            np.zeros(len(ids), np.int64),
        )
        model = ModelConfig(
            dim=dim,
            blocks=blocks,
            heads=heads,
            dqk=dqk,
            dv=dv,
            history_length=history,
            out_len=out_len,
            input_dropout=0.2,
            linear_dropout=0.2,
            temperature=0.05,
        )
        train = TrainConfig(
            epochs=1,
            batch_users=8,
            learning_rate=1e-3,
            betas=(0.9, 0.98),
            weight_decay=0.0,
            negatives=self.arrays["negative_ids"].shape[1],
        )
        self.config = ExperimentConfig(model=model, train=train)

    def rows(self, name: str) -> torch.Tensor:
        """Rows of the reference's item table in our order, padding first."""
        table = self.arrays[name]
        return torch.from_numpy(table[np.concatenate([[0], self.items.ids])])

    def parameters(self, prefix: str) -> dict[str, torch.Tensor]:
        """The reference's weights or gradients under our names."""
        names = {
            "uvqk": "uvqk",
            "time_bias": "time_bias",
            "position_bias": "pos_bias",
            "out.weight": "out_weight",
            "out.bias": "out_bias",
        }
        found = {
            "items.weight": self.rows(f"{prefix}item_emb"),
            "positions": torch.from_numpy(self.arrays[f"{prefix}pos_emb"]),
        }
        for block in range(self.config.model.blocks):
            for ours, theirs in names.items():
                array = self.arrays[f"{prefix}block{block}.{theirs}"]
                found[f"blocks.{block}.{ours}"] = torch.from_numpy(array)
        return found

    def model(self) -> Hstu:
        model = build(self.config, self.items)
        model.load_state_dict(self.parameters("w."))
        return model.eval()

    def dense(self, ids: Any) -> torch.Tensor:
        """Ids of any shape as item indices, 0 staying 0."""
        ids = np.asarray(ids)
        return torch.from_numpy(np.where(ids == 0, 0, np.searchsorted(self.items.ids, ids) + 1))

    def batch(self) -> TrainingBatch:
        lengths = torch.from_numpy(self.arrays["lengths"])
        stamps = torch.from_numpy(self.arrays["timestamps_N"])
        ids = self.dense(self.arrays["ids_N_train"])
        valid = torch.arange(self.width) < lengths[:, None]
        following = torch.cat([ids[:, 1:], ids[:, -1:]], dim=1)
        nexts = torch.cat([stamps[:, 1:], stamps[:, -1:]], dim=1)
        return TrainingBatch(Batch(ids * valid, stamps, nexts, lengths), following * valid)


@pytest.fixture(params=sorted(CASES), scope="module")
def case(request: pytest.FixtureRequest) -> Case:
    torch.set_num_threads(1)
    return Case(CASES[request.param])


def test_time_buckets_are_equal(case: Case) -> None:
    inputs = case.batch().inputs
    buckets = time_buckets(inputs.timestamps, inputs.next_timestamps)
    assert np.array_equal(buckets.numpy(), case.arrays["time_buckets"])


def test_forward_agrees(case: Case) -> None:
    model, inputs = case.model(), case.batch().inputs
    with torch.no_grad():
        encoded = model.encode(inputs)
        query = model.query(inputs)
        scores = model.score_corpus(query)
        embedded = model.embed_inputs(inputs)
        bias = relative_bias(
            model.blocks[0].bias, time_buckets(inputs.timestamps, inputs.next_timestamps)
        )
    for ours, name in [
        (embedded, "preproc_out"),
        (bias, "bias.block0"),
        (encoded, "encoded"),
        (query, "current"),
        (scores, "corpus_scores"),
    ]:
        np.testing.assert_allclose(ours.numpy(), case.arrays[name], atol=1e-5, rtol=0)


def test_narrow_batches_agree_with_the_padded_reference(case: Case) -> None:
    """The width of a batch is not the divisor: cut to the longest history, nothing changes."""
    inputs = case.batch().inputs
    width = int(inputs.lengths.max())
    narrow = Batch(*(part[:, :width] for part in inputs[:3]), inputs.lengths)
    with torch.no_grad():
        encoded = case.model().encode(narrow)
    np.testing.assert_allclose(encoded.numpy(), case.arrays["encoded"][:, :width], atol=1e-5)


def test_loss_and_gradients_agree(case: Case) -> None:
    model = case.model()
    losses = training_loss(model, case.batch(), case.dense(case.arrays["negative_ids"]))
    losses.mean().backward()
    expected = case.arrays["loss_per_token"]
    np.testing.assert_allclose(losses.detach().numpy(), expected, atol=5e-5, rtol=0)
    np.testing.assert_allclose(losses.mean().item(), case.arrays["loss"], rtol=1e-5)
    reference = case.parameters("g.")
    for name, parameter in model.named_parameters():
        gradient = reference[name].numpy()
        assert parameter.grad is not None
        np.testing.assert_allclose(
            parameter.grad.numpy(), gradient, atol=1e-4 * abs(gradient).max(), rtol=0, err_msg=name
        )
