"""What ``hstu train`` offers: validation events, a start, interruption and resumption, progress."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
import yaml
from click.testing import CliRunner
from safetensors.torch import load_file
from training_samples import HISTORY, Recorder, experiment

from hstu.data.batches import TrainingRows
from hstu.data.errors import ExitCode, HstuError
from hstu.data.split import read_events
from hstu.models import Hstu, build, start_from
from hstu.training import train
from hstu.training.commands import train_command
from hstu.training.curve import EpochResult
from hstu.training.objective import NextItem, Step
from hstu.training.progress import Bar, reporter
from hstu.training.runtime import Runtime

if TYPE_CHECKING:
    from pathlib import Path

    from hstu.data.items import Items

WEIGHTS = "model.safetensors"


def side_car(folder: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((folder / "checkpoint.json").read_text())
    return data


def test_validation_events_come_last_of_each_user(split: Path, items: Items) -> None:
    """Against a second, naive reading: the target is the validation event of every user."""
    rows = TrainingRows.read(split, items, history_length=HISTORY, parts=("train", "validation"))
    train_part, last = read_events(split, "train"), read_events(split, "validation")
    assert rows.targets.tolist() == items.index(last.items).tolist()
    for row, user in enumerate(last.users):
        mine = train_part.users == user
        history = rows.histories[row]
        assert history.item_index.tolist() == items.index(train_part.items[mine]).tolist()
        assert history.timestamps.tolist() == train_part.timestamps[mine].tolist()
        assert history.request_timestamp == last.timestamps[row]


def test_the_test_event_is_never_read(split: Path, baseline: Path, tmp_path: Path) -> None:
    zone = tmp_path / "zone"
    zone.mkdir()
    for name in ("train", "validation", "items"):
        shutil.copy(split / f"{name}.parquet", zone)
    train(experiment(), zone, tmp_path / "all", include_validation=True)
    assert side_car(tmp_path / "all")["data"].keys() == {
        "train.parquet",
        "validation.parquet",
        "items.parquet",
    }
    (zone / "validation.parquet").unlink()
    train(experiment(), zone, tmp_path / "some")
    assert (tmp_path / "some" / WEIGHTS).read_bytes() == (baseline / WEIGHTS).read_bytes()
    assert (tmp_path / "all" / WEIGHTS).read_bytes() != (baseline / WEIGHTS).read_bytes()


def test_events_that_are_not_trained_on_are_not_counted(split: Path, tmp_path: Path) -> None:
    changes = {"focal": {"alpha": 0.5}, "side_features": {"popularity": 0.1}}
    zone = tmp_path / "zone"
    zone.mkdir()
    for name in ("train", "items"):
        shutil.copy(split / f"{name}.parquet", zone)
    train(experiment(interventions=changes), split, tmp_path / "beside")
    train(experiment(interventions=changes), zone, tmp_path / "alone")
    assert (tmp_path / "beside" / WEIGHTS).read_bytes() == (
        tmp_path / "alone" / WEIGHTS
    ).read_bytes()


def test_every_epoch_visits_all_users_in_an_order_of_its_own(
    split: Path, items: Items, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    visited: list[int] = []
    draws: list[float] = []

    def watched(
        _self: NextItem,
        _model: Hstu,
        _rows: TrainingRows,
        users: list[int],
        generator: torch.Generator,
    ) -> Step:
        visited.extend(users)
        draws.append(float(torch.rand((), generator=generator)))
        return Step(1.0, 1, {})

    monkeypatch.setattr(NextItem, "backward", watched)
    config = experiment({"epochs": 3})
    train(config, split, tmp_path, progress=Recorder())
    users = len(TrainingRows.read(split, items, history_length=HISTORY))
    epochs = [visited[start : start + users] for start in range(0, len(visited), users)]
    assert [sorted(epoch) for epoch in epochs] == [list(range(users))] * 3
    assert len({tuple(epoch) for epoch in epochs}) == 3
    assert len(set(draws)) == len(draws), "the draws of an epoch are its own too"


def test_a_start_gives_weights_and_leaves_what_is_new(baseline: Path, items: Items) -> None:
    torch.manual_seed(5)
    model = build(experiment(interventions={"film": {}}), items)
    fresh = {name: value.clone() for name, value in model.state_dict().items()}
    digest = start_from(model, baseline, items)
    assert digest == side_car(baseline)["model"]["sha256"]
    old = load_file(baseline / WEIGHTS)
    new = [name for name in fresh if name not in old]
    assert new
    for name, value in model.state_dict().items():
        assert torch.equal(value, old.get(name, fresh[name])), name


def test_a_start_that_does_not_fit_names_the_tensors(
    split: Path, items: Items, baseline: Path, tmp_path: Path
) -> None:
    with pytest.raises(HstuError, match=r"blocks\.0\.uvqk is \(8, 32\), the config asks for"):
        start_from(build(experiment(dqk=8), items), baseline, items)
    with pytest.raises(HstuError, match=r"blocks\.1\.uvqk is missing"):
        start_from(build(experiment(blocks=2), items), baseline, items)
    config = experiment({"epochs": 1}, {"film": {}})
    train(config, split, tmp_path, progress=Recorder())
    with pytest.raises(HstuError, match=r"interventions\.film\.\S+ is in the checkpoint only"):
        train(experiment(), split, tmp_path / "out", start=tmp_path)


def test_fine_tuning_begins_anew_and_is_recorded(
    split: Path, baseline: Path, tmp_path: Path
) -> None:
    shown = Recorder()
    config = experiment({"epochs": 2, "learning_rate": 1e-9})
    train(config, split, tmp_path, start=baseline, progress=shown)
    assert [row.epoch for row in shown.rows] == [1, 2]
    assert side_car(tmp_path)["start"] == side_car(baseline)["model"]["sha256"]
    assert side_car(baseline)["start"] is None
    for name, value in load_file(tmp_path / WEIGHTS).items():
        torch.testing.assert_close(value, load_file(baseline / WEIGHTS)[name], rtol=0, atol=1e-6)


@pytest.mark.parametrize("options", [{}, {"include_validation": True, "start": "baseline"}])
@pytest.mark.parametrize("at", [(2, 0.3), (3, 0.0)])
def test_an_interrupted_run_ends_as_if_it_had_not_been(
    split: Path, baseline: Path, tmp_path: Path, at: tuple[int, float], options: dict[str, Any]
) -> None:
    given = options | ({"start": baseline} if "start" in options else {})
    config = experiment(interventions={"mpta": {"last": 3}, "film": {}})
    whole, out = tmp_path / "whole", tmp_path / "out"
    train(config, split, whole, progress=Recorder(), **given)
    shown = Recorder(at)
    with pytest.raises(KeyboardInterrupt):
        train(config, split, out, progress=shown, **given)
    assert shown.notes == [f"interrupted: {at[0] - 1} of 3 epochs are kept in {out}/snapshot.pt"]
    shown = Recorder()
    train(config, split, out, progress=shown, **given)
    assert [row.epoch for row in shown.rows] == list(range(at[0], 4))
    assert (out / WEIGHTS).read_bytes() == (whole / WEIGHTS).read_bytes()
    losses = [
        [line.split("\t")[:3] for line in (folder / "curve.tsv").read_text().splitlines()]
        for folder in (whole, out)
    ]
    assert losses[0] == losses[1]


def test_an_interrupted_run_leaves_no_checkpoint_of_an_earlier_one(
    split: Path, tmp_path: Path
) -> None:
    """Else its weights would be judged beside the curve and the snapshot of the other."""
    train(experiment(), split, tmp_path, progress=Recorder())
    assert (tmp_path / "checkpoint.json").is_file()
    with pytest.raises(KeyboardInterrupt):
        train(experiment(train={"epochs": 4}), split, tmp_path, progress=Recorder((2, 0.5)))
    assert not (tmp_path / "checkpoint.json").exists()


def test_a_snapshot_of_another_run_is_named_and_left(
    split: Path, baseline: Path, tmp_path: Path
) -> None:
    config = experiment()
    with pytest.raises(KeyboardInterrupt):
        train(config, split, tmp_path, progress=Recorder((2, 0.0)))
    others = {
        "start": {"start": baseline},
        "data": {"include_validation": True},
        "seed": {"seed": 2},
    }
    for name, options in others.items():
        copy = tmp_path / name
        copy.mkdir()
        shutil.copy(tmp_path / "snapshot.pt", copy)
        shown = Recorder()
        train(config, split, copy, progress=shown, **options)  # type: ignore[arg-type]
        told = f"{copy}/snapshot.pt belongs to another run ({name} differs): starting afresh"
        assert shown.notes == [told]
        assert len(shown.rows) == 3


def test_a_damaged_snapshot_is_refused(split: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        train(experiment(), split, tmp_path, progress=Recorder((2, 0.0)))
    snapshot = tmp_path / "snapshot.pt"
    whole = snapshot.read_bytes()
    foreign = io.BytesIO()
    torch.save({"weights": torch.zeros(2)}, foreign)
    for content in (whole[:-100], whole[:10], b"", b"no snapshot", foreign.getvalue()):
        snapshot.write_bytes(content)
        with pytest.raises(HstuError, match="truncated or foreign") as caught:
            train(experiment(), split, tmp_path, progress=Recorder())
        assert caught.value.where == str(snapshot)
        assert snapshot.read_bytes() == content


def test_a_device_that_is_not_there(
    split: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(HstuError, match="sees no CUDA device") as caught:
        train(experiment(), split, tmp_path, runtime=Runtime("cuda"))
    assert caught.value.exit_code == ExitCode.ENVIRONMENT


def write_experiment(folder: Path, epochs: int) -> list[str]:
    """A config and a recipe; the arguments that name them."""
    data = experiment().to_json()
    (folder / "base.yaml").write_text(yaml.safe_dump(data))
    recipe = {"train": {"epochs": epochs}, "interventions": {"film": {}}}
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    return ["--config", str(folder / "base.yaml"), "--recipe", str(folder / "recipe.yaml")]


def test_a_terminated_command_says_how_to_go_on(split: Path, tmp_path: Path) -> None:
    out, done = str(tmp_path / "out"), str(tmp_path / "done")
    argv = [sys.executable, "-m", "hstu", "train", *write_experiment(tmp_path, 500)]
    argv += ["--data", str(split), "--seed", "3", "--out", out, "--seed", "4", "--out", done]
    child = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, env=os.environ)
    assert child.stderr is not None
    for line in child.stderr:
        if line.startswith("epoch 2/500"):
            child.send_signal(signal.SIGTERM)
            break
    said = child.stderr.read()
    child.stderr.close()
    assert child.wait() == 130
    kept = re.search(r"interrupted: (\d+) of 500 epochs are kept in", said)
    assert kept is not None
    assert int(kept[1]) >= 2
    assert f"run the same command with --seed 3 --out {out} --seed 4 --out {done}\n" in said
    assert "Traceback" not in said


def test_the_command_passes_everything_on(
    split: Path, baseline: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    argv = [*write_experiment(tmp_path, 1), "--data", str(split), "--device", "cpu"]
    argv += ["--include-validation", "--from", str(baseline), "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(train_command, argv)
    assert result.exit_code == 0, result.output
    found = side_car(tmp_path / "out")
    assert found["config"]["train"]["epochs"] == 1
    assert "film" in found["config"]["interventions"]
    assert "validation.parquet" in found["data"]
    assert found["start"] == side_car(baseline)["model"]["sha256"]
    assert "epoch 1/1  loss " in result.stderr


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with reporter(4, seed=7) as shown:
        assert isinstance(shown, Bar)
        shown.batch(EpochResult(1, 3.25, 5000, 2.0, {}), 0.5)
        shown.note("[a note] 1")
        before = terminal.getvalue()
        shown.epoch(EpochResult(1, 3.25, 10000, 4.0, {}), 4)
        shown.batch(EpochResult(2, 3.25, 5000, 2.0, {}), 0.5)
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", terminal.getvalue())
    for part in ("seed 7 epoch 2/4", "loss 3.2500", "2,500 tokens/s", "[a note] 1"):
        assert part in text
    assert "left" not in before, "nobody knows before an epoch is over"
    assert "about 0:00:10 left" in text
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert not isinstance(reporter(4, seed=7), Bar)


def test_a_curve_has_its_columns(baseline: Path) -> None:
    table = np.genfromtxt(baseline / "curve.tsv", names=True)
    assert table.dtype.names == ("epoch", "loss", "tokens", "seconds")
    assert np.isfinite(table["loss"]).all()
