"""Fine-tuning on preferences: its start, its pairs, its reference, its controls."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from training_samples import HISTORY, Recorder, experiment

from hstu.config import ExperimentConfig, read_config
from hstu.config.preference import PreferenceConfig
from hstu.config.sections import KeyProblemError
from hstu.data.batches import TrainingRows
from hstu.data.errors import ExitCode, HstuError
from hstu.data.split import read_events
from hstu.losses.preference import dpo, ipo, simpo
from hstu.models import Hstu, build, start_from
from hstu.training import preference as module
from hstu.training import train
from hstu.training.objective import NextItem, Step, make_optimizer
from hstu.training.preference import Preference, mine

if TYPE_CHECKING:
    from hstu.data.items import Items

ROOT = Path(__file__).parents[2]
DPO = {"loss": "dpo", "beta": 0.1, "top": 20, "skip": 3}


def preferring(section: dict[str, Any], **train_section: Any) -> ExperimentConfig:
    """An experiment with much dropout, which must not matter."""
    settings = {"epochs": 2, "learning_rate": 0.003, "preference": section} | train_section
    return experiment(settings, input_dropout=0.5, linear_dropout=0.5)


def begun(config: ExperimentConfig, baseline: Path, items: Items) -> tuple[Hstu, Preference]:
    model = build(config, items)
    start_from(model, baseline, items)
    assert config.train.preference is not None
    return model.train(), Preference(config.train.preference, model, len(items))


@pytest.fixture
def rows(split: Path, items: Items) -> TrainingRows:
    return TrainingRows.read(split, items, history_length=HISTORY)


def stepped(objective: Preference, model: Hstu, rows: TrainingRows) -> Step:
    model.zero_grad()
    users = list(range(len(rows)))
    return objective.backward(model.train(), rows, users, torch.Generator().manual_seed(0))


def optimised(objective: Preference, model: Hstu, rows: TrainingRows, steps: int) -> Step:
    optimizer = make_optimizer(model, model.config.train)
    for _ in range(steps):
        stepped(objective, model, rows)
        optimizer.step()
    return stepped(objective, model, rows)


@pytest.mark.parametrize(
    ("section", "expected"),
    [(DPO, math.log(2)), (DPO | {"loss": "ipo", "beta": 0.2}, 1 / (4 * 0.2**2))],
)
def test_it_starts_with_no_gain_and_a_gradient(
    baseline: Path, items: Items, rows: TrainingRows, section: dict[str, Any], expected: float
) -> None:
    model, objective = begun(preferring(section), baseline, items)
    step = stepped(objective, model, rows)
    assert step.watched["delta"] == 0.0
    assert step.loss / step.tokens == pytest.approx(expected, rel=1e-6)
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    assert len(gradients) == len(list(model.parameters()))
    assert max(float(g.abs().max()) for g in gradients) > 0


def test_the_losses_are_those_of_the_equations() -> None:
    margin = torch.tensor([-2.0, 0.0, 3.0], dtype=torch.float64)
    sigmoid = [1 / (1 + math.exp(-0.1 * value)) for value in margin.tolist()]
    assert dpo(margin, beta=0.1).tolist() == pytest.approx([-math.log(s) for s in sigmoid])
    assert ipo(margin, beta=0.25).tolist() == pytest.approx([16.0, 4.0, 1.0])
    sigmoid = [1 / (1 + math.exp(-(2 * value - 0.5))) for value in margin.tolist()]
    found = simpo(margin, beta=2.0, gamma=0.5).tolist()
    assert found == pytest.approx([-math.log(s) for s in sigmoid])


def test_the_reference_stays_what_it_was(baseline: Path, items: Items, rows: TrainingRows) -> None:
    model, objective = begun(preferring(DPO), baseline, items)
    reference = objective.reference
    before = {name: value.clone() for name, value in reference.state_dict().items()}
    step = optimised(objective, model, rows, 5)
    assert step.watched["delta"] / step.tokens > 0.01
    assert not reference.training
    assert not any(parameter.requires_grad for parameter in reference.parameters())
    for name, value in reference.state_dict().items():
        assert torch.equal(value, before[name])
        assert value.data_ptr() != model.state_dict()[name].data_ptr()
    assert any(not torch.equal(v, before[n]) for n, v in model.state_dict().items())


def test_a_shared_reference_never_gains(baseline: Path, items: Items, rows: TrainingRows) -> None:
    """The shipped control, with the rejects that so small a corpus has."""
    control = read_config(
        ROOT / "config/experiments/base.yaml",
        [ROOT / "config/recipes/controls/dpo-delta-zero.yaml"],
    ).train.preference
    honest = read_config(
        ROOT / "config/experiments/base.yaml", [ROOT / "config/recipes/dpo.yaml"]
    ).train.preference
    assert control is not None
    assert honest == replace(control, reference="frozen")
    model, objective = begun(preferring(DPO | {"reference": "policy"}), baseline, items)
    step = optimised(objective, model, rows, 5)
    assert step.watched["delta"] == 0.0
    assert step.loss / step.tokens == pytest.approx(math.log(2), rel=1e-6)


def test_rejects_are_ranked_high_and_never_taken(
    split: Path, baseline: Path, items: Items, rows: TrainingRows
) -> None:
    """Against a naive ranking of the corpus at every position."""
    model, objective = begun(preferring(DPO), baseline, items)
    users = list(range(len(rows)))
    batch = rows.batch(users)
    taken = module._taken(rows, users, len(items) + 1)
    valid = batch.inputs.valid
    with torch.no_grad():
        encoded = objective.reference.encode(batch.inputs)
        section = PreferenceConfig(**DPO)
        pairs = mine(objective.reference, encoded[valid], batch, taken, section, torch.Generator())
        scores = model.eval().score_corpus(encoded[valid])
    events = read_events(split, "train")
    names = items.index(events.items)
    by_user = [{*names[events.users == user].tolist()} for user in dict.fromkeys(events.users)]
    owners = torch.nonzero(valid)[:, 0][pairs.tokens].tolist()
    assert pairs.wanted.tolist() == batch.targets[valid][pairs.tokens].tolist()
    for owner, wanted, rejected, score in zip(
        owners, pairs.wanted.tolist(), pairs.rejected.tolist(), scores[pairs.tokens], strict=True
    ):
        assert wanted in by_user[owner]
        assert rejected not in by_user[owner]
        above = int((score > score[rejected - 1]).sum())
        assert DPO["skip"] <= above < DPO["top"]
    assert len(set(pairs.rejected.tolist())) > 5


def test_users_of_all_positions_are_known(rows: TrainingRows, items: Items) -> None:
    """Rows longer than the window: what is older than it counts as taken too."""
    long = max(range(len(rows)), key=lambda row: len(rows.histories[row].item_index))
    oldest = rows.histories[long].item_index[:-HISTORY]
    assert len(oldest) > 0
    assert module._taken(rows, [long], len(items) + 1)[0, torch.from_numpy(oldest)].all()
    assert module._taken(rows, [long], len(items) + 1)[0, int(rows.targets[long])]


def test_margins_are_scores_over_the_temperature_on_both_sides(
    baseline: Path, items: Items, rows: TrainingRows
) -> None:
    model, objective = begun(preferring(DPO), baseline, items)
    optimised(objective, model, rows, 2)
    batch = rows.batch([0, 1])
    with torch.no_grad():
        queries = model.eval().encode(batch.inputs)[batch.inputs.valid]
        wanted, rejected = torch.ones(len(queries), dtype=int), torch.full((len(queries),), 7)
        pairs = module.Pairs(torch.ones(len(queries), dtype=torch.bool), wanted, rejected)
        found = module._margins(model, queries, pairs)
        scores = model.score_corpus(queries)
    torch.testing.assert_close(found, (scores[:, 0] - scores[:, 6]) / 0.05, rtol=1e-5, atol=1e-5)


def test_the_anchor_adds_the_next_items_gradient(
    baseline: Path, items: Items, rows: TrainingRows
) -> None:
    gradients = []
    for anchor in (0.0, 2.0):
        model, objective = begun(
            preferring(DPO | {"anchor": anchor}, estimator="full"), baseline, items
        )
        step = stepped(objective, model, rows)
        gradients.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
    model.eval().zero_grad()
    users = list(range(len(rows)))
    alone = NextItem(model.config.train, len(items)).backward(model, rows, users, torch.Generator())
    assert step.watched["anchor_loss"] / step.tokens == pytest.approx(alone.loss / alone.tokens)
    parameters = [p.grad for p in model.parameters() if p.grad is not None]
    for without, anchored, own in zip(*gradients, parameters, strict=True):
        torch.testing.assert_close(anchored, without + 2 * own, rtol=1e-4, atol=1e-6)


def test_the_curve_watches_accuracy_and_gain(split: Path, baseline: Path, tmp_path: Path) -> None:
    train(preferring(DPO, epochs=3), split, tmp_path, start=baseline, progress=Recorder())
    header, *lines = (tmp_path / "curve.tsv").read_text().splitlines()
    assert header.split("\t")[4:] == ["preference_accuracy", "delta"]
    first, *_, last = ([float(cell) for cell in line.split("\t")] for line in lines)
    assert 0 <= first[4] <= last[4] <= 1
    assert first[5] < last[5]
    assert last[1] < math.log(2)


def test_an_interrupted_fine_tuning_keeps_its_reference(
    split: Path, baseline: Path, tmp_path: Path
) -> None:
    config = preferring(DPO | {"anchor": 1.0}, epochs=3)
    train(config, split, tmp_path / "whole", start=baseline, progress=Recorder())
    with pytest.raises(KeyboardInterrupt):
        train(config, split, tmp_path / "out", start=baseline, progress=Recorder((3, 0.1)))
    train(config, split, tmp_path / "out", start=baseline, progress=Recorder())
    whole, out = (tmp_path / name / "model.safetensors" for name in ("whole", "out"))
    assert whole.read_bytes() == out.read_bytes()


def test_what_cannot_be_is_refused(
    split: Path,
    baseline: Path,
    items: Items,
    rows: TrainingRows,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(HstuError, match="begins with a trained checkpoint") as caught:
        train(preferring(DPO), split, tmp_path, progress=Recorder())
    assert caught.value.exit_code == ExitCode.USAGE
    cut = experiment({"preference": DPO}, {"mpta": {"rows": 1}})
    with pytest.raises(HstuError, match="hold all training events"):
        train(cut, split, tmp_path, start=baseline, progress=Recorder())
    model, objective = begun(preferring(DPO), baseline, items)
    monkeypatch.setattr(
        module, "_taken", lambda _, numbers, columns: torch.ones(len(numbers), columns) > 0
    )
    with pytest.raises(HstuError, match="no pair"):
        stepped(objective, model, rows)
    with pytest.raises(HstuError, match="of 3 items none is left to reject"):
        Preference(PreferenceConfig(**DPO), model, 3)
    with pytest.raises(KeyProblemError, match="belongs to the loss"):
        PreferenceConfig(**DPO, margin=0.5)
    with pytest.raises(KeyProblemError, match="more than 'skip'"):
        PreferenceConfig(loss="dpo", beta=0.1, top=3, skip=3)


@pytest.mark.parametrize("name", ["dpo", "ipo", "simpo", "dpo-anchored"])
def test_recipes(name: str) -> None:
    config = read_config(
        ROOT / "config/experiments/base.yaml", [ROOT / f"config/recipes/{name}.yaml"]
    )
    assert config.train.preference is not None
    assert config.train.preference.loss == name.removesuffix("-anchored")
    assert 1e-5 <= config.train.learning_rate <= 1e-4
    assert config.train.epochs <= 3
