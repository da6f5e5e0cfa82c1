from __future__ import annotations

import hashlib
import json
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
from click.testing import CliRunner
from fake_trees import scoring_tree
from hypothesis import given, settings
from hypothesis import strategies as st

from hstu.data.errors import HstuError
from hstu.data.items import Items
from hstu.data.readers import Interactions, RawData
from hstu.data.split import SplitOptions, write_split
from hstu.evaluation.diagnose_commands import diagnose_commands
from hstu.evaluation.evaluator import Worker, score
from hstu.evaluation.genres import measure_genres, reject_similarity, summary
from hstu.evaluation.overlap import failure_overlap, measure_overlap
from hstu.evaluation.preference import preference_alarm, read_accuracies
from hstu.evaluation.reads import reads
from hstu.evaluation.results import CanonicalResult, write_canonical
from hstu.evaluation.task import CanonicalTask, Questions, read_task

if TYPE_CHECKING:
    from pathlib import Path

USERS, CORPUS = 40, 30
GENRES = ["a|b", "a", "b", "c", "", "a|c"]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A split of users with 4 to 12 events and weights that the worker only looks for."""
    root = tmp_path_factory.mktemp("diagnose")
    rng = np.random.default_rng(5)
    events = []
    for user in range(USERS):
        seen = rng.permutation(CORPUS)[: 4 if user < 3 else rng.integers(6, 12)] + 1
        events += [(user, item, time) for time, item in enumerate(seen)]
    genres = [GENRES[k % len(GENRES)] for k in range(CORPUS)]
    ids = np.arange(1, CORPUS + 1)
    items = Items.of_columns(ids, [""] * CORPUS, genres, np.zeros(CORPUS, np.int64))
    raw = RawData(Interactions(*np.array(events).T), items, str)
    write_split(raw, "tiny", root / "split", SplitOptions())
    (root / "model").mkdir()
    (root / "model" / "model.safetensors").write_bytes(b"weights")
    scoring_tree(root / "tree")
    return root


def task_of(project: Path, target: str = "validation") -> CanonicalTask:
    return read_task(project / "split", "test" if target == "test" else "validation")


def worker(project: Path) -> Worker:
    return Worker((sys.executable,), str(project / "tree"), 120.0)


def digests(folder: Path) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.iterdir()
        if path.name != "test_reads.jsonl"
    }


failures = st.lists(st.booleans(), min_size=1, max_size=40).map(lambda flags: np.array(flags))


@settings(deadline=None)
@given(failures)
def test_the_overlap_with_itself_is_one(failed: np.ndarray) -> None:  # type: ignore[type-arg]
    (found,) = failure_overlap(failed, {1: failed})
    if not failed.any():
        assert found.overlap is found.lift is found.overlap_interval is None, "missing, not 0"
    else:
        assert found.overlap == 1.0
        assert found.overlap_interval == (1.0, 1.0)
        assert found.lift == pytest.approx(1 / failed.mean())


@settings(deadline=None)
@given(st.integers(1, 40), st.integers(0, 2**31))
def test_counts_are_those_of_the_definition(users: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    target, one, two = (rng.random(users) < share for share in (0.6, 0.5, 0.3))
    rows = failure_overlap(target, {1: one, 3: two}, seed=3)
    assert rows == failure_overlap(target, {1: one, 3: two}, seed=3), "to the bit"
    assert [row.steps for row in rows] == [(1,), (3,), (1, 3)]
    sets = {u for u in range(users) if one[u]}, {u for u in range(users) if two[u]}
    missed = {u for u in range(users) if target[u]}
    for row, earlier in zip(rows, (*sets, sets[0] | sets[1]), strict=True):
        assert row.target_failed == len(missed)
        assert row.earlier_failed == len(earlier)
        assert row.both_failed == len(earlier & missed)
        assert row.base_rate == len(earlier) / users
        if missed:
            assert row.overlap == len(earlier & missed) / len(missed)
    chance = 1 - (1 - len(sets[0]) / users) * (1 - len(sets[1]) / users)
    assert rows[2].independent == pytest.approx(chance)


def test_permuted_users_overlap_by_the_base_rate() -> None:
    rng = np.random.default_rng(0)
    target = rng.random(20_000) < 0.64
    (found,) = failure_overlap(target, {1: rng.permutation(target)})
    assert found.overlap == pytest.approx(found.base_rate, abs=0.01)
    assert found.lift_interval is not None
    assert found.lift_interval[0] < 1 < found.lift_interval[1]


def test_the_interval_covers_as_it_says() -> None:
    """Of 300 draws of 400 users, 95 in 100 intervals hold the overlap that is planted."""
    rng = np.random.default_rng(1)
    held = 0
    for seed in range(300):
        target = rng.random(400) < 0.6
        earlier = rng.random(400) < np.where(target, 0.8, 0.3)
        (found,) = failure_overlap(target, {1: earlier}, seed=seed)
        assert found.overlap_interval is not None
        held += found.overlap_interval[0] <= 0.8 <= found.overlap_interval[1]
    assert 0.90 < held / 300 < 0.985


def test_earlier_events_are_ranked_by_their_own_histories(project: Path) -> None:
    before = digests(project / "model")
    report = measure_overlap(task_of(project), project / "model", worker(project), (1, 2))
    again = measure_overlap(task_of(project), project / "model", worker(project), (1, 2))
    assert report == again, "recomputed to the bit"
    assert digests(project / "model") == before, "the model is frozen"
    assert (report.users, report.too_short) == (USERS - 3, 3)
    assert set(report.labels) == {"1", "2"}
    assert all("optimistic" in label for label in report.labels.values())
    # With a seen filter of the full history every earlier event would be missed.
    assert all(0 < row.earlier_failed < report.users for row in report.overlaps[:2])
    assert report.test_reads is None
    written = json.dumps(report.to_json())
    assert "user_id" not in written
    assert len(written) < 3000, "counts only"


def test_only_the_target_is_a_read_of_the_test(project: Path) -> None:
    report = measure_overlap(task_of(project, "test"), project / "model", worker(project), (1,))
    assert report.test_reads == reads(project / "model") == 1
    assert report.labels["1"].startswith("validation target")


def test_steps_that_cannot_be_are_refused(project: Path) -> None:
    for steps in ((), (0,), (2, 2)):
        with pytest.raises(HstuError, match="steps back"):
            measure_overlap(task_of(project), project / "model", worker(project), steps)
    with pytest.raises(HstuError, match="no user has more than 99"):
        measure_overlap(task_of(project), project / "model", worker(project), (99,))


def naive_similarity(questions: Questions, scores: np.ndarray, user: int, top: int) -> list[float]:  # type: ignore[type-arg]
    """Mean Jaccard with rejects and with all unseen items, pair by pair."""
    names = [set(np.flatnonzero(row)) for row in questions.items.genres]
    target = int(questions.targets[user])
    seen = questions.seen_items[questions.seen_offsets[user] : questions.seen_offsets[user + 1]]
    rest = [k for k in range(len(names)) if k not in seen and k != target]
    above = [k for k in rest if scores[user, k] >= scores[user, target]]
    best = sorted(above, key=lambda k: -scores[user, k])[:top]
    means = []
    for group in (best, rest):
        pairs = [names[k] | names[target] for k in group]
        values = [
            len(names[k] & names[target]) / len(union)
            for k, union in zip(group, pairs, strict=True)
            if union
        ]
        means.append(float(np.mean(values)) if values else float("nan"))
    return means


@pytest.mark.parametrize("top", [1, 5, 50])
def test_genre_similarity_is_that_of_the_definition(project: Path, top: int) -> None:
    questions = task_of(project).questions
    scores = np.random.default_rng(top).permuted(
        np.tile(np.arange(CORPUS, dtype=np.float32), (USERS, 1)), axis=1
    )
    measured = reject_similarity(questions, [scores[:7], scores[7:]], top)
    expected = [naive_similarity(questions, scores, user, top) for user in range(USERS)]
    np.testing.assert_allclose(measured, expected, atol=1e-6)
    assert np.isnan(measured[:, 0]).any(), "a user whose target is first has no rejects"
    report = summary(questions, measured, top)
    assert (report.users, report.others) == (
        int((~np.isnan(measured).any(axis=1)).sum()),
        int(np.isnan(measured).any(axis=1).sum()),
    )


def test_rejects_of_a_model_that_goes_by_genre_are_alike(project: Path) -> None:
    """Planted: items score by their genres' similarity with the target."""
    questions = task_of(project).questions
    genres = questions.items.genres.astype(np.float32)
    of_target = genres[questions.targets]
    union = of_target.sum(1)[:, None] + genres.sum(1) - of_target @ genres.T
    alike = (of_target @ genres.T / np.maximum(union, 1)).astype(np.float32)
    alike[np.arange(USERS), questions.targets] = 0.6  # what is more alike is put above
    report = summary(questions, reject_similarity(questions, [alike]), 50)
    assert report.difference is not None
    assert report.difference > 0.3
    assert report.low is not None
    assert report.low > 0


def test_genres_of_a_checkpoint(project: Path) -> None:
    report = measure_genres(task_of(project), project / "model", worker(project))
    assert report.users + report.others == USERS
    assert report.rejects is not None
    assert report.random is not None
    with pytest.raises(HstuError, match="scores of 3 users"):
        reject_similarity(task_of(project).questions, [np.zeros((3, CORPUS), np.float32)])


def test_a_fault_without_a_log_names_the_checkpoint(project: Path, tmp_path: Path) -> None:
    questions = task_of(project).questions
    (tmp_path / "model").mkdir()
    with pytest.raises(HstuError, match="no weights here") as error:
        score(questions, [tmp_path / "model"], worker(project), None, questions.ranks, "test")
    assert error.value.where == str(tmp_path / "model")


def result(ndcg: float, **changes: object) -> CanonicalResult:
    facts = {"target": "validation", "split": "s", "users": 9, "corpus": 99}
    return CanonicalResult(**{**facts, **changes}, metrics={"ndcg@10": ndcg})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("accuracies", "before", "after", "alarm"),
    [
        ([0.5, 0.9, 1.0], 0.20, 0.14, True),
        ([0.5, 0.9], 0.20, 0.1979, True),
        ([0.5, 0.9], 0.20, 0.1981, False),
        ([0.5, 0.9], 0.20, 0.25, False),
        ([0.9, 0.5], 0.20, 0.10, False),
        ([0.7], 0.20, 0.10, True),
        ([0.4], 0.20, 0.10, False),
    ],
)
def test_the_alarm(accuracies: list[float], before: float, after: float, alarm: bool) -> None:
    assert preference_alarm(accuracies, result(before), result(after)).over_optimised is alarm


def test_evaluations_that_are_not_alike_raise_no_alarm(tmp_path: Path) -> None:
    for change in ({"split": "t"}, {"target": "test"}, {"users": 8}, {"corpus": 98}):
        with pytest.raises(HstuError, match=f"differ in {next(iter(change))}"):
            preference_alarm([0.5, 1.0], result(0.2), result(0.1, **change))
    with pytest.raises(HstuError, match="nothing can be said"):
        preference_alarm([0.5, 1.0], result(0.0), result(0.1))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("epoch\tloss\n1\t0.5\n", "no column preference_accuracy"),
        ("epoch\tpreference_accuracy\n", "shares from 0 to 1"),
        ("epoch\tpreference_accuracy\n1\t1.5\n", "shares from 0 to 1"),
        ("epoch\tpreference_accuracy\n1\tnan\n", "shares from 0 to 1"),
        ("epoch\tpreference_accuracy\n1\thigh\n", "is no number"),
        ("epoch\tpreference_accuracy\n1\n", "is no number"),
    ],
)
def test_a_log_that_says_nothing_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "log.tsv").write_text(text)
    with pytest.raises(HstuError, match=message):
        read_accuracies(tmp_path / "log.tsv")


def test_the_commands(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(project / "tree"))

    def run(*words: object) -> tuple[int, str]:
        done = CliRunner().invoke(diagnose_commands, [str(word) for word in words])
        if isinstance(done.exception, HstuError):
            raise done.exception
        return done.exit_code, done.stdout

    given = ["--split", project / "split", "--checkpoint", project / "model"]
    status, text = run("overlap", *given, "--step", 1)
    assert status == 0
    assert "too short" in text
    assert "no metric" in text
    assert json.loads(run("overlap", *given, "--step", 1, "--json")[1])["users"] == USERS
    assert "Jaccard" in run("genres", *given, "--top", 5)[1]
    (tmp_path / "log.tsv").write_text("epoch\tpreference_accuracy\n1\t0.5\n2\t0.9\n")
    write_canonical(tmp_path / "before", result(0.2))
    write_canonical(tmp_path / "after", result(0.1))
    words = ["preference", "--log", tmp_path / "log.tsv", "--before", tmp_path / "before"]
    words += ["--after", tmp_path / "after"]
    assert run(*words)[0] == 0
    status, text = run(*words, "--strict")
    assert status == 1
    assert "over-optimised" in text
    assert json.loads(run(*words, "--json")[1])["over_optimised"] is True
    assert run(*words[:-1], tmp_path / "before", "--strict")[0] == 0
