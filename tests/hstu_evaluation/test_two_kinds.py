"""Canonical and subset results: two types, two sets of files, and a count of test reads."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from click.testing import CliRunner
from fake_trees import fake_tree
from hypothesis import given, settings
from hypothesis import strategies as st

from hstu.data.errors import HstuError
from hstu.data.histories import HistoryTable
from hstu.data.items import Items
from hstu.data.readers import Interactions, RawData
from hstu.data.split import SplitOptions, write_split
from hstu.evaluation.commands import evaluate as evaluate_command
from hstu.evaluation.reads import LEDGER, count_read, reads
from hstu.evaluation.results import (
    CanonicalResult,
    Sample,
    SubsetResult,
    read_canonical,
    read_subset,
    write_canonical,
    write_subset,
)
from hstu.evaluation.task import CanonicalTask, Questions, read_task, sampled, selected

if TYPE_CHECKING:
    from pathlib import Path

USERS, CORPUS = 30, 12


@pytest.fixture
def split(tmp_path: Path) -> Path:
    rng = np.random.default_rng(3)
    events = []
    for user in range(100, 100 + USERS):
        items = rng.permutation(CORPUS)[: rng.integers(3, CORPUS)] + 1
        events += [(user, item, time) for time, item in enumerate(items)]
    items = Items.of_columns(
        np.arange(1, CORPUS + 1), [""] * CORPUS, [""] * CORPUS, np.zeros(CORPUS, np.int64)
    )
    raw = RawData(Interactions(*np.array(events).T), items, str)
    write_split(raw, "tiny", tmp_path / "split", SplitOptions())
    return tmp_path / "split"


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "checkpoint.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder


@pytest.fixture
def task(split: Path) -> CanonicalTask:
    return read_task(split, "test")


def rows_of(questions: Questions) -> list[tuple[object, ...]]:
    """Every user with all that is asked and known of them."""
    table, seen = questions.histories, questions.seen_offsets
    return [
        (
            table.user_ids[k],
            table.item_ids[table.offsets[k] : table.offsets[k + 1]].tolist(),
            table.timestamps[table.offsets[k] : table.offsets[k + 1]].tolist(),
            table.request_timestamps[k],
            questions.targets[k],
            questions.seen_items[seen[k] : seen[k + 1]].tolist(),
        )
        for k in range(len(questions))
    ]


def test_some_users_are_those_users(task: CanonicalTask) -> None:
    rows = np.array([0, 7, 8, 29])
    assert rows_of(task.questions.take(rows)) == [rows_of(task.questions)[k] for k in rows]
    assert rows_of(task.questions.take(np.array([], np.int64))) == []


def test_earlier_questions_know_nothing_of_what_came_later(task: CanonicalTask) -> None:
    lengths = np.diff(task.questions.histories.offsets)
    long = task.questions.take(np.flatnonzero(lengths > 2))
    for steps in (1, 2):
        before = rows_of(long)
        for old, new in zip(before, rows_of(long.earlier(steps)), strict=True):
            user, items, times, _, _, _ = old
            assert new[0] == user
            assert new[1] == items[:-steps]
            assert new[2] == times[:-steps]
            assert new[3] == times[-steps]
            assert task.questions.items.ids[new[4]] == items[-steps]
            assert new[4] not in new[5], "the earlier target is not filtered away"
            assert sorted(task.questions.items.ids[new[5]]) == sorted(set(items[:-steps]))
    with pytest.raises(ValueError, match="no more than"):
        task.questions.earlier(int(lengths.max()))


def test_a_larger_sample_holds_the_smaller_and_seeds_differ(task: CanonicalTask) -> None:
    def drawn(count: int, seed: int) -> set[int]:
        return set(sampled(task, count, seed).questions.histories.user_ids.tolist())

    assert drawn(5, 1) < drawn(12, 1) < drawn(29, 1)
    assert drawn(12, 1) == drawn(12, 1) != drawn(12, 2)
    assert sampled(task, 5, 1).population == USERS


def test_all_users_are_no_subset(task: CanonicalTask) -> None:
    with pytest.raises(HstuError, match="1 to 29 of the split's 30 users") as error:
        sampled(task, USERS, 0)
    assert error.value.exit_code == 2
    with pytest.raises(HstuError, match="1 to 29"):
        selected(task, task.questions.histories.user_ids)
    for users in ([99], [100, 100]):
        with pytest.raises(HstuError, match=f"user {users[0]} is not one of"):
            selected(task, np.array(users))


CANONICAL = CanonicalResult(
    target="test", split="s", users=30, corpus=12, metrics={"mrr": 0.5}, test_reads=2
)
SUBSET = SubsetResult(
    target="validation",
    split="s",
    users=5,
    population=30,
    sample=Sample(7, "f" * 64),
    corpus=12,
    metrics={"subset/mrr": 0.5},
)


def test_results_come_back_as_they_were(tmp_path: Path) -> None:
    write_canonical(tmp_path, CANONICAL)
    write_subset(tmp_path, SUBSET)
    assert read_canonical(tmp_path) == CANONICAL
    assert read_subset(tmp_path) == SUBSET
    assert "test_reads" not in json.loads((tmp_path / "subset-metrics.json").read_text())


def test_one_kind_of_result_is_not_read_as_the_other(tmp_path: Path) -> None:
    full, some = tmp_path / "full", tmp_path / "some"
    write_canonical(full, CANONICAL)
    write_subset(some, SUBSET)
    (tmp_path / "posing").mkdir()
    posing = tmp_path / "posing" / "metrics.json"
    posing.write_bytes((some / "subset-metrics.json").read_bytes())
    for place in (some, some / "subset-metrics.json", posing):
        with pytest.raises(HstuError, match="never compared or ranked together"):
            read_canonical(place)
    for place in (full, full / "metrics.json"):
        with pytest.raises(HstuError, match="never compared or ranked together"):
            read_subset(place)


def test_a_result_with_another_key_is_refused(tmp_path: Path) -> None:
    write_canonical(tmp_path, CANONICAL)
    path = tmp_path / "metrics.json"
    for change in ({"population": 3}, {"users": None}):
        data = {**CANONICAL.to_json(), **change}
        path.write_text(json.dumps({k: v for k, v in data.items() if v is not None}))
        with pytest.raises(HstuError, match=next(iter(change))):
            read_canonical(tmp_path)


def run(*words: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(evaluate_command, [str(word) for word in words])
    if isinstance(done.exception, HstuError):
        return done.exception.exit_code, "", str(done.exception)
    return done.exit_code, done.stdout, done.stderr


def test_the_command_leaves_one_kind_and_counts_reads(
    tmp_path: Path, split: Path, checkpoint: Path
) -> None:
    def evaluate(target: str, users: int, *more: object) -> tuple[int, str, str]:
        folder = tmp_path / f"tree{users}"
        if not folder.exists():
            fake_tree(folder, "header(); rows()", users=users, corpus=CORPUS)
        words = ["--split", split, "--target", target, "--checkpoint", checkpoint]
        return run(*words, "--worker-pythonpath", folder, "--out", tmp_path / "out", *more)

    def left() -> set[str]:
        return {path.name for path in (tmp_path / "out").iterdir()} - {"worker.log"}

    assert evaluate("validation", 5, "--users", 5, "--sample-seed", 1)[0] == 0
    assert left() == {"subset-metrics.json", "subset-ranks.parquet"}
    assert not (checkpoint / LEDGER).exists(), "validation is not counted"
    some = read_subset(tmp_path / "out")
    assert all(name.startswith("subset/") for name in some.metrics)
    assert (some.users, some.population, some.sample.seed) == (5, USERS, 1)
    assert some.test_reads is None

    (tmp_path / "users.txt").write_text("104\n101\n")
    status, text, told = evaluate("test", 2, "--users-file", tmp_path / "users.txt")
    assert status == 0
    assert "test target read 1 time for this checkpoint" in told
    assert json.loads(text)["sample"]["seed"] is None
    status, text, told = evaluate("test", USERS)
    assert status == 0
    assert "test target read 2 times for this checkpoint" in told
    assert json.loads(text)["test_reads"] == read_canonical(tmp_path / "out").test_reads == 2
    assert {"metrics.json", "ranks.parquet", "subset-metrics.json"} <= left()
    purposes = [json.loads(line)["purpose"] for line in (checkpoint / LEDGER).open()]
    assert purposes == ["subset", "canonical"]
    assert evaluate("test", USERS, "--sample-seed", 1)[0] == 2
    assert evaluate("test", 5, "--users", 5, "--users-file", tmp_path / "users.txt")[0] == 2
    for bad in ("one\n", f"{2**70}\n"):
        (tmp_path / "users.txt").write_text(bad)
        assert evaluate("test", 2, "--users-file", tmp_path / "users.txt")[0] == 6
    assert reads(checkpoint) == 2, "what is refused reads nothing"


def test_a_read_that_is_cut_short_counts_and_the_worker_does_not_see_the_count(
    tmp_path: Path, split: Path, checkpoint: Path
) -> None:
    body = "sys.exit(f'saw {os.listdir(\"checkpoint0000\")}')"
    tree = fake_tree(tmp_path / "tree", body, users=USERS, corpus=CORPUS)
    count_read(checkpoint, split="s", users=1, purpose="canonical")
    words = ["--split", split, "--target", "test", "--checkpoint", checkpoint]
    status, _, told = run(*words, "--worker-pythonpath", tree, "--out", tmp_path / "out")
    assert status == 1
    assert "checkpoint.json" in told
    assert LEDGER not in told
    assert reads(checkpoint) == 2


def test_reads_of_other_weights_do_not_count(checkpoint: Path) -> None:
    assert reads(checkpoint) == 0
    for expected in (1, 2):
        assert count_read(checkpoint, split="s", users=3, purpose="subset") == expected
    (checkpoint / "model.safetensors").write_bytes(b"other weights")
    assert reads(checkpoint) == 0
    assert count_read(checkpoint, split="s", users=3, purpose="subset") == 1
    assert len((checkpoint / LEDGER).read_text().splitlines()) == 3


@pytest.mark.parametrize("line", ["read", "[]", '{"weights": 3}', "{}", ""])
def test_a_damaged_count_is_no_count(checkpoint: Path, line: str) -> None:
    count_read(checkpoint, split="s", users=3, purpose="canonical")
    with (checkpoint / LEDGER).open("a") as stream:
        stream.write(line + "\n")
    with pytest.raises(HstuError, match=r"test_reads\.jsonl:2"):
        reads(checkpoint)


def test_a_read_that_cannot_be_recorded_does_not_happen(
    tmp_path: Path, split: Path, checkpoint: Path
) -> None:
    (checkpoint / LEDGER).mkdir()
    tree = fake_tree(tmp_path / "tree", "header(); rows()", users=USERS, corpus=CORPUS)
    words = ["--split", split, "--target", "test", "--checkpoint", checkpoint]
    status, _, told = run(*words, "--worker-pythonpath", tree, "--out", tmp_path / "out")
    assert status == 9
    assert "cannot be recorded" in told
    assert not list((tmp_path / "out").iterdir())
    with pytest.raises(HstuError, match="weights are missing"):
        count_read(tmp_path, split="s", users=3, purpose="canonical")


@settings(deadline=None)
@given(st.integers(1, 29), st.integers(0, 2**32))
def test_samples_are_ascending_and_of_the_size(count: int, seed: int) -> None:
    users = np.arange(USERS)
    empty = np.zeros(USERS + 1, np.int64)
    nothing = np.empty(0, np.int64)
    histories = HistoryTable(users, empty, nothing, nothing, users)
    items = Items.of_columns(np.array([1]), [""], [""], np.array([0]))
    full = CanonicalTask(Questions("test", "s", items, histories, users * 0, empty, nothing))
    drawn = sampled(full, count, seed)
    ids = drawn.questions.histories.user_ids
    assert len(ids) == count
    assert (np.diff(ids) > 0).all()
    assert drawn.sample == Sample.of(ids, seed)
    assert replace(drawn.sample, seed=None) == selected(full, ids[::-1]).sample


def test_the_two_kinds_share_no_type() -> None:
    """Nothing that takes one takes the other, for a reader of types either."""
    assert not isinstance(SUBSET, CanonicalResult)
    assert not set(CanonicalResult.__mro__) & set(SubsetResult.__mro__) - {object}


def test_the_commands_do_not_import_torch() -> None:
    code = (
        "import sys, hstu.evaluation.compare_command, hstu.evaluation.diagnose_commands\n"
        "sys.exit('torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_worker_is_told_how_to_compute_only_where_it_was_said(
    tmp_path: Path, split: Path, checkpoint: Path
) -> None:
    told = tmp_path / "told.json"
    say = f"open({str(told)!r}, 'w').write(json.dumps(sys.argv[1:])); header(); rows()"
    fake_tree(tmp_path / "tree", say, users=USERS, corpus=CORPUS)
    words = ["--split", split, "--target", "validation", "--checkpoint", checkpoint]
    words += ["--worker-pythonpath", tmp_path / "tree", "--out", tmp_path / "out"]

    def heard(*more: object) -> list[str]:
        assert run(*words, *more)[0] == 0
        arguments: list[str] = json.loads(told.read_text())
        return arguments[: arguments.index("--checkpoint")]

    assert heard() == ["worker"]
    assert heard("--threads", 2, "--device", "cpu") == [
        "worker",
        "--threads",
        "2",
        "--device",
        "cpu",
    ]
