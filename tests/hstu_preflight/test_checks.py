"""Each planted fault is caught by the invariant that names it; the model as it is passes all."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
import yaml
from planted import CONFIG, PLAYBOOK, ROOT, make_repeating_split, make_split, model_with

from hstu.preflight.bench import Bench, Finding
from hstu.preflight.run import INVARIANTS, preflight
from hstu.preflight.start import strangers

if TYPE_CHECKING:
    from hstu.data.batches import TrainingBatch
    from hstu.models import Hstu

HONEST = [
    PLAYBOOK / "no-residual.yaml",
    Path(__file__).with_name("no-relative-bias.yaml"),
]
_DROPOUT = "        self.dropout = nn.Dropout(model.input_dropout)\n"
_ROWS = "        rows: Tensor = self.items(ids)\n"
_INPUTS = "        x = self.embed_inputs(batch)\n"
_ATTENTION = "    attention = functional.silu(scores)\n"
_OUTPUT = "unit(x * batch.valid[..., None])"

FAULTS = {
    "pooling over the future": (
        "I1",
        _INPUTS,
        _INPUTS + "        x = x + x.mean(1, keepdim=True)\n",
    ),
    "softmax before the mask": ("I1", _ATTENTION, "    attention = scores.softmax(-1)\n"),
    "mask one too wide": ("I1", "attention.tril() @", "attention.tril(1) @"),
    "unused parameter": (
        "I4",
        _DROPOUT,
        _DROPOUT + "        self.unused = nn.Parameter(torch.ones(3))\n",
    ),
    "detached bias": ("I4", "bias.time.index_select", "bias.time.detach().index_select"),
    "feature in the positives": (
        "I5",
        _ROWS,
        "        rows: Tensor = self.items(ids) + self.item_genres[ids].sum(-1, keepdim=True)\n",
    ),
    "feature in the positives of training only": (
        "I5",
        _ROWS,
        "        rows: Tensor = self.items(ids) + (0.01 if self.training else 0.0)\n",
    ),
    "corpus without its norm": ("I5", "unit(self.item_table()[1:])", "self.item_table()[1:]"),
    "temperature twice": ("I5", "queries @ unit(", "queries / 0.05 @ unit("),
    "dropout in evaluation": (
        "I6",
        "self.dropout(x)\n",
        "functional.dropout(x, self.config.model.input_dropout, training=True)\n",
    ),
    "dropout of another rate": ("I6", _DROPOUT, "        self.dropout = nn.Dropout(0.3)\n"),
    "dropout without a seed": (
        "I6",
        "self.dropout(x)\n",
        "x * torch.empty_like(x).bernoulli_(0.9, generator=NOISE)\n",
    ),
    "divided by the batch's width": ("I7", "(v / divisor)", "(v / width)"),
    "centred over the batch": ("I7", _OUTPUT, "unit((x - x.mean(0)) * batch.valid[..., None])"),
    "query from the last column": ("I7", "encoded[rows, batch.lengths - 1]", "encoded[:, -1]"),
    "not a number": ("I7", _OUTPUT, "unit(x / 0 * batch.valid[..., None])"),
}


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    return make_split(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def bench(split: Path) -> Bench:
    return Bench.load(CONFIG, split)


def check(name: str, bench: Bench) -> Finding:
    finding: Finding = import_module(f"hstu.preflight.{INVARIANTS[name]}").check(bench)
    return finding


@pytest.mark.parametrize("name", INVARIANTS)
def test_the_model_passes(name: str, bench: Bench) -> None:
    finding = check(name, bench)
    assert finding.passed, finding


@pytest.mark.parametrize("change", HONEST)
@pytest.mark.parametrize("name", INVARIANTS)
def test_an_honest_change_passes(
    name: str, change: Path, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The demo's model without residual path is worse, as training shows, but not unsafe; nor is
    a model that reads no times."""
    edits = yaml.safe_load(change.read_text())
    changed = model_with(*((edit["find"], edit["replace"]) for edit in edits))
    monkeypatch.setattr("hstu.preflight.bench.build", changed.build)
    finding = check(name, bench)
    assert finding.passed, finding


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_caught(
    fault: str, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, find, replacement = FAULTS[fault]
    faulty = model_with((find, replacement))
    faulty.__dict__["NOISE"] = torch.Generator()
    faulty.__dict__["NOISE"].seed()
    monkeypatch.setattr("hstu.preflight.bench.build", faulty.build)
    finding = check(name, bench)
    assert not finding.passed, finding


def test_a_zero_gate_hides_no_leak(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The leak is worth nothing at the start; it would be learnt."""
    source = model_with((_ROWS, "        rows: Tensor = self.items(ids) + self.gate\n"))

    def build(config: Any, items: Any) -> Any:
        model = source.Hstu(config, items)
        model.gate = torch.nn.Parameter(torch.zeros(config.model.dim))
        return model

    monkeypatch.setattr("hstu.preflight.bench.build", build)
    assert not check("I5", bench).passed


def test_a_forgotten_optimiser_group_is_caught(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forgetful(model: Hstu, config: Any) -> torch.optim.Optimizer:
        return torch.optim.AdamW(list(model.parameters())[1:], lr=config.learning_rate)

    monkeypatch.setattr("hstu.preflight.gradients.make_optimizer", forgetful)
    finding = check("I4", bench)
    assert "not in exactly one optimiser group: positions" in finding.detail


def test_a_label_in_the_inputs_is_caught(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    losses = import_module("hstu.preflight.losses")
    honest = losses.training_loss

    def peeking(model: Hstu, batch: TrainingBatch, negatives: torch.Tensor) -> torch.Tensor:
        seen = batch.inputs._replace(items=batch.targets)
        loss: torch.Tensor = honest(model, batch._replace(inputs=seen), negatives)
        return loss

    monkeypatch.setattr(losses, "training_loss", peeking)
    assert "random labels are told from negatives" in check("I8", bench).detail


def test_the_start_does_not_depend_on_what_histories_repeat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A head that pools the history is nearer to a label that repeats it, and no leak."""
    losses = import_module("hstu.preflight.losses")
    # The first loss is all that is looked at, and far from subtle.
    for name, value in {"_STEPS": 1, "_LAST": 1, "_BUILDS": 4, "_TABLES": 4}.items():
        monkeypatch.setattr(losses, name, value)
    recipes = [ROOT / "config/recipes/scoring-head.yaml"]
    config = ROOT / "config/experiments/ml-1m.yaml"
    finding = check("I8", Bench.load(config, make_repeating_split(tmp_path), recipes))
    assert "the first loss is" not in finding.detail


def test_strangers_are_no_items_of_their_row(bench: Bench) -> None:
    batch, negatives = strangers(bench, torch.Generator().manual_seed(1))
    held = batch.inputs.items[batch.inputs.valid.nonzero()[:, 0]]
    drawn = torch.cat([batch.targets[batch.inputs.valid][:, None], negatives], dim=1)
    assert not (drawn[..., None] == held[:, None]).any()
    assert 1 <= int(drawn.min()) <= int(drawn.max()) <= len(bench.items)
    assert not batch.targets[~batch.inputs.valid].any()


def test_a_scaled_loss_is_caught(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    losses = import_module("hstu.preflight.losses")
    honest = losses.training_loss
    monkeypatch.setattr(losses, "training_loss", lambda *given: honest(*given) * 0.9)
    assert "the first loss is" in check("I8", bench).detail


def test_what_breaks_is_an_error_and_no_pass(split: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    faulty = model_with((_INPUTS, "        raise RuntimeError('planted')\n"))
    monkeypatch.setattr("hstu.preflight.bench.build", faulty.build)
    report = preflight(CONFIG, split)
    assert report["passed"] is False
    # I11 looks at interventions, and here there are none to build a model for.
    broken = [item for item in report["invariants"] if item["id"] != "I11"]
    assert {item["status"] for item in broken} == {"error"}
    assert all("RuntimeError: planted" in item["detail"] for item in broken)
