from __future__ import annotations

import multiprocessing
import os
import signal
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import yaml
from entry_samples import CONFIG, FILES, PATCH, candidate, evidence, failed, project, scores

from eop.core.errors import EopError
from eop.leaderboard import (
    Decision,
    Entry,
    Scores,
    entry_folder,
    read_entries,
    read_entry,
    write_entry,
)
from eop.leaderboard import files as entry_files

if TYPE_CHECKING:
    from pathlib import Path


def snapshot(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


def test_an_entry_reads_back_as_it_was_written(tmp_path):
    root = project(tmp_path)
    for entry, files in ((candidate(), FILES), (failed(), {})):
        write_entry(root, entry, files)
        assert read_entry(root, entry.id) == entry
    assert [entry.id for entry in read_entries(root)] == ["demo-it01-p01", "demo-it01-p02"]


def test_a_row_of_before_intervals_keeps_its_bytes(tmp_path):
    root = project(tmp_path)
    entry = candidate()
    assert entry.test is not None
    path = write_entry(root, replace(entry, test=replace(entry.test, interval=None)), FILES)
    data = yaml.safe_load((path / "entry.yaml").read_text())
    assert "interval" not in data["test"]
    assert len(data["validation"]["interval"]) == 2
    read = read_entry(root, entry.id)
    assert read.test is not None
    assert (read.test.interval, read.validation) == (None, entry.validation)


def test_missing_is_null_on_disk(tmp_path):
    root = project(tmp_path)
    data = yaml.safe_load((write_entry(root, failed(), {}) / "entry.yaml").read_text())
    assert data["validation"] is None
    assert data["test"] is None
    assert data["cost"] == {
        "actions": None,
        "wall_s": 3.0,
        "train_s": None,
        "tokens": None,
        "usd": None,
    }
    assert data["decision"]["delta"] is None
    assert data["reproducible"] is False


def test_writing_the_same_entry_again_touches_nothing(tmp_path):
    root = project(tmp_path)
    folder = write_entry(root, candidate(), FILES)
    (folder / "dvc.lock").write_text("schema: '2.0'\n")
    before = snapshot(folder)
    assert write_entry(root, candidate(), FILES) == folder
    assert snapshot(folder) == before


@pytest.mark.parametrize(
    ("entry", "files", "named"),
    [
        (candidate(reason="another"), FILES, "entry.yaml"),
        (candidate(), {**FILES, "config.yaml": b"model: {dim: 9}\n"}, "config.yaml"),
        (candidate(), {"patch.diff": PATCH, "config.yaml": CONFIG}, "curve.tsv"),
    ],
)
def test_an_entry_is_history(tmp_path, entry, files, named):
    root = project(tmp_path)
    folder = write_entry(root, candidate(), FILES)
    before = snapshot(folder)
    with pytest.raises(EopError, match=named) as caught:
        write_entry(root, entry, files)
    assert caught.value.code == "EOP663"
    assert snapshot(folder) == before


def _killed_writer(root: Path, writes: int) -> None:
    real, done = entry_files.write_bytes, []

    def write(path: Path, content: bytes) -> None:
        if len(done) == writes:
            os.kill(os.getpid(), signal.SIGKILL)
        real(path, content)
        done.append(path)

    entry_files.write_bytes = write
    entry_files._sync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
    write_entry(root, candidate(), FILES)


@pytest.mark.parametrize("writes", [0, 1, 3, 5, 99])
def test_a_kill_at_any_moment_leaves_no_half_entry(tmp_path, writes):
    root = project(tmp_path)
    writer = multiprocessing.get_context("fork").Process(target=_killed_writer, args=(root, writes))
    writer.start()
    writer.join()
    assert writer.exitcode == -signal.SIGKILL
    entries = read_entries(root)
    assert entries == ([candidate()] if writes == 99 else [])
    folder = write_entry(root, candidate(), FILES)
    assert {path.name for path in folder.parent.iterdir()} == {folder.name}
    assert {path.name for path in folder.iterdir()} == {
        *FILES,
        "entry.yaml",
        "metrics.json",
        "dvc.yaml",
    }


@pytest.mark.parametrize("writes", [0, 5])
def test_an_entry_may_come_to_a_folder_that_holds_weights(tmp_path, writes):
    root = project(tmp_path)
    weights = entry_folder(root, candidate().id) / "model-seed1.safetensors"
    weights.parent.mkdir(parents=True)
    weights.write_bytes(b"weights")
    writer = multiprocessing.get_context("fork").Process(target=_killed_writer, args=(root, writes))
    writer.start()
    writer.join()
    assert read_entries(root) == []
    write_entry(root, candidate(), FILES)
    assert read_entries(root) == [candidate()]
    assert weights.read_bytes() == b"weights"


def _write(root: Path, number: int) -> None:
    write_entry(root, candidate(f"demo-it01-p{number:02d}"), FILES)


def test_writers_at_once_leave_every_entry(tmp_path):
    root = project(tmp_path)
    context = multiprocessing.get_context("fork")
    # Each id twice: the second writer of an id must find the same content.
    writers = [context.Process(target=_write, args=(root, i % 4)) for i in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * 8
    assert len(read_entries(root)) == 4


def nan_metric() -> Entry:
    good = scores(0.1)
    return candidate(test=Scores({**good.mean, "mrr": float("nan")}, good.seeds))


@pytest.mark.parametrize(
    ("entry", "named"),
    [
        (nan_metric(), "test.mean.mrr"),
        (candidate(cost=replace(candidate().cost, wall_s=float("inf"))), "cost.wall_s"),
        (candidate(decision=Decision(True, float("nan"), None, "")), "decision.delta"),
        (candidate(evidence=evidence(config={"lr": [float("nan")]})), "evidence.config.lr.0"),
        (candidate(id="../outside"), "id"),
        (candidate(outcome="great"), "outcome"),
        (candidate(outcome="failed"), "validation"),
        (candidate(validation=None, test=None), "validation"),
        (failed(decision=Decision(True, None, None, "")), "promoted"),
        (candidate(test_reads=0), "test_reads"),
        (candidate(validation=Scores({"ndcg@10": 0.1}, {})), "validation.mean"),
        (candidate(evidence={**evidence(), "prompt": 1}), "prompt"),
    ],
)
def test_what_breaks_the_schema_is_refused_and_leaves_nothing(tmp_path, entry, named):
    root = project(tmp_path)
    with pytest.raises(EopError) as caught:
        write_entry(root, entry, FILES)
    assert caught.value.code == "EOP661"
    assert named in caught.value.message
    assert not (root / "leaderboard").exists()
    assert not (root / "outside").exists()


def test_files_must_be_what_the_evidence_says(tmp_path):
    root = project(tmp_path)
    for files in ({**FILES, "patch.diff": b"other"}, {"config.yaml": CONFIG}, {**FILES, "x": b""}):
        with pytest.raises(EopError) as caught:
            write_entry(root, candidate(), files)
        assert caught.value.code == "EOP662"
    assert not entry_folder(root, "demo-it01-p01").exists()


def test_a_broken_entry_is_an_error_and_no_lost_row(tmp_path):
    root = project(tmp_path)
    folder = write_entry(root, candidate(), FILES)
    text = (folder / "entry.yaml").read_text()
    (folder / "entry.yaml").write_text(text.replace("mrr: 0.06", "mrr: .nan", 1))
    with pytest.raises(EopError, match=r"validation.mean.mrr: nan"):
        read_entries(root)
    (folder / "entry.yaml").write_text(text)
    folder.rename(folder.with_name("renamed"))
    with pytest.raises(EopError, match="lies in the folder 'renamed'"):
        read_entries(root)


def test_an_absent_entry_is_named(tmp_path):
    with pytest.raises(EopError) as caught:
        read_entry(project(tmp_path), "nobody")
    assert caught.value.code == "EOP664"


def test_the_mean_is_over_seeds():
    found = scores(0.1)
    assert list(found.seeds) == ["1", "2"]
    assert found.mean["ndcg@10"] == pytest.approx(0.1)
    with pytest.raises(ValueError, match="at least one seed"):
        Scores.over_seeds({})
