"""Training: repeatable, resumable after a kill, loud about bad numbers; checkpoints verified."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
import yaml
from small import config_data, make_split

from hstu.config import parse_config
from hstu.data.batches import History, TrainingRows
from hstu.data.errors import ExitCode, HstuError
from hstu.data.items import Items
from hstu.data.split import read_events
from hstu.models import load, score_histories
from hstu.training import train

if TYPE_CHECKING:
    from pathlib import Path

WEIGHTS = "model.safetensors"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    return make_split(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def items(data: Path) -> Items:
    return Items.read(data / "items.parquet")


@pytest.fixture(scope="module")
def trained(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("trained")
    train(parse_config(config_data(), source="test"), data, out, seed=1, threads=1)
    return out


def test_rows_are_the_reference_layout(data: Path, items: Items) -> None:
    """Checked against a second, naive reading of the events."""
    rows = TrainingRows.read(data, items, history_length=5)
    events = read_events(data, "train")
    expected = []
    for user in np.unique(events.users):
        mine = events.users == user
        ids, stamps = items.index(events.items[mine]), events.timestamps[mine]
        if len(ids) > 1:
            expected.append((ids[:-1][-5:], ids[1:][-5:], stamps[1:][-5:]))
    batch = rows.batch(range(len(rows)))
    assert len(rows) == len(expected)
    for row, (history, targets, nexts) in enumerate(expected):
        size = int(batch.inputs.lengths[row])
        assert batch.inputs.items[row, :size].tolist() == history.tolist()
        assert batch.targets[row, :size].tolist() == targets.tolist()
        assert batch.inputs.next_timestamps[row, :size].tolist() == nexts.tolist()
        assert not batch.targets[row, size:].any()


def test_groups_hold_each_row_once(data: Path, items: Items) -> None:
    rows = TrainingRows.read(data, items, history_length=10)
    groups = rows.groups(range(len(rows)), 4)
    assert len(groups) == 4
    lengths = torch.cat([group.inputs.lengths for group in groups])
    whole = rows.batch(range(len(rows)))
    assert lengths.tolist() == sorted(whole.inputs.lengths.tolist())
    assert sum(int(g.targets.sum()) for g in groups) == int(whole.targets.sum())


def test_the_loss_falls_and_the_seed_decides(data: Path, trained: Path, tmp_path: Path) -> None:
    config = parse_config(config_data(), source="test")
    train(config, data, tmp_path / "again", seed=1, threads=1)
    train(config, data, tmp_path / "other", seed=2, threads=1)
    weights = (trained / WEIGHTS).read_bytes()
    assert (tmp_path / "again" / WEIGHTS).read_bytes() == weights
    assert (tmp_path / "other" / WEIGHTS).read_bytes() != weights
    header, *lines = (trained / "curve.tsv").read_text().splitlines()
    assert header == "epoch\tloss\ttokens\tseconds"
    assert [line.split("\t")[0] for line in lines] == ["1", "2", "3", "4"]
    assert float(lines[-1].split("\t")[1]) < float(lines[0].split("\t")[1])


def test_a_killed_run_goes_on_to_the_same_weights(
    data: Path, trained: Path, tmp_path: Path
) -> None:
    config = tmp_path / "experiment.yaml"
    config.write_text(yaml.safe_dump(config_data()))
    out = tmp_path / "out"
    argv = [sys.executable, "-m", "hstu", "train", "--config", str(config), "--data", str(data)]
    argv += ["--out", str(out), "--snapshot-every", "1"]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as child:
        assert child.stderr is not None
        for line in child.stderr:
            if line.startswith("epoch 3/4"):
                child.send_signal(signal.SIGKILL)
                break
    assert not (out / "checkpoint.json").exists()
    assert (out / "snapshot.pt").exists()
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert "going on after epoch" in done.stderr
    assert (out / WEIGHTS).read_bytes() == (trained / WEIGHTS).read_bytes()
    assert not (out / "snapshot.pt").exists()


def test_a_snapshot_of_another_run_is_not_used(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    config = parse_config(config_data(epochs=2), source="test")
    with monkeypatch.context() as patch:
        patch.setattr("hstu.training.loop.save", stop)
        with pytest.raises(KeyboardInterrupt):
            train(config, data, tmp_path / "out", seed=1, threads=1, snapshot_every=1)
    train(config, data, tmp_path / "out", seed=2, threads=1)
    train(config, data, tmp_path / "clean", seed=2, threads=1)
    assert "belongs to another run" in capsys.readouterr().err
    found = (tmp_path / "out" / WEIGHTS).read_bytes()
    assert found == (tmp_path / "clean" / WEIGHTS).read_bytes()


def test_a_loss_that_is_no_number_stops_training(data: Path, tmp_path: Path) -> None:
    config = parse_config(config_data(learning_rate=1e30), source="test")
    with pytest.raises(HstuError, match="the loss is nan in epoch") as caught:
        train(config, data, tmp_path, seed=1, threads=1)
    assert caught.value.exit_code == ExitCode.FAILURE
    assert not (tmp_path / "checkpoint.json").exists()


def test_a_checkpoint_scores_as_the_model_did(data: Path, trained: Path, items: Items) -> None:
    model = load(trained, items)
    histories = TrainingRows.read(data, items, history_length=10).histories
    chunks = [*score_histories(model.train(), histories, chunk=16)]
    assert model.training
    scores = torch.cat(chunks)
    assert scores.shape == (len(histories), len(items))
    assert scores.dtype == torch.float32
    again = torch.cat([*score_histories(load(trained, items), histories, chunk=7)])
    torch.testing.assert_close(scores, again, rtol=0, atol=1e-6)


def test_an_empty_history_is_refused(trained: Path, items: Items) -> None:
    empty = History(np.array([], np.int64), np.array([], np.int64), 0)
    with pytest.raises(HstuError, match="without events"):
        next(score_histories(load(trained, items), [empty]))


def test_damaged_and_foreign_checkpoints_are_refused(
    trained: Path, items: Items, tmp_path: Path
) -> None:
    for name in (WEIGHTS, "checkpoint.json"):
        (tmp_path / name).write_bytes((trained / name).read_bytes())
    other = Items(items.ids[::-1], items.titles, items.genres, items.genre_names, items.years)
    with pytest.raises(HstuError, match="another list of items"):
        load(tmp_path, other)
    (tmp_path / WEIGHTS).write_bytes((trained / WEIGHTS).read_bytes()[:-10])
    with pytest.raises(HstuError, match="are not those"):
        load(tmp_path, items)
    side_car = json.loads((tmp_path / "checkpoint.json").read_text())
    (tmp_path / "checkpoint.json").write_text(json.dumps(side_car | {"schema": "other/1"}))
    with pytest.raises(HstuError, match="not a checkpoint"):
        load(tmp_path, items)


def test_commands_and_errors_of_the_command_line(data: Path, tmp_path: Path) -> None:
    argv = [sys.executable, "-X", "importtime", "-m", "hstu"]
    listed = subprocess.run([*argv, "--help"], capture_output=True, text=True, check=True)
    for command in ("data", "train", "preflight", "evaluate", "popularity", "hstu data split"):
        assert command in listed.stdout
    helped = subprocess.run([*argv, "data", "--help"], capture_output=True, text=True, check=True)
    assert "torch" not in listed.stderr + helped.stderr
    train_argv = [*argv[:1], *argv[3:], "train", "--config", "none.yaml", "--data", str(data)]
    failed = subprocess.run([*train_argv, "--out", str(tmp_path)], capture_output=True, text=True)
    assert failed.returncode == ExitCode.CONFIG
    assert failed.stderr.startswith("none.yaml: error: the experiment config does not exist")
