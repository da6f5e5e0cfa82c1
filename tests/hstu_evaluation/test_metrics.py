from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hstu.data.errors import HstuError
from hstu.evaluation.metrics import contributions, metric_names, metrics, ranks


def naive_rank(scores: list[float], target: int, seen: set[int]) -> int:
    """The definition, item by item."""
    rank = 1
    for item, score in enumerate(scores):
        if item != target and item not in seen and score >= scores[target]:
            rank += 1
    return rank


def naive_metrics(rank: list[int], corpus: int) -> dict[str, float]:
    """The definition, user by user, for every cutoff that the corpus reaches."""
    sums: dict[str, list[float]] = {"mrr": [1 / place for place in rank]}
    for cutoff in (1, 10, 50, 100, 200, 500, 1000):
        if cutoff <= corpus:
            hits = [place <= cutoff for place in rank]
            sums[f"hr@{cutoff}"] = [float(hit) for hit in hits]
            if cutoff <= 200:
                gains = [1 / math.log2(place + 1) for place in rank]
                sums[f"ndcg@{cutoff}"] = [
                    gain if hit else 0.0 for hit, gain in zip(hits, gains, strict=True)
                ]
    return {name: math.fsum(values) / len(rank) for name, values in sums.items()}


def ranked(scores: list[list[float]], targets: list[int], seen: list[set[int]]) -> list[int]:
    pairs = [(row, item) for row, items in enumerate(seen) for item in sorted(items)]
    rows, items = (np.array([pair[k] for pair in pairs], dtype=np.int64) for k in (0, 1))
    table = np.array(scores, dtype=np.float32)
    result: list[int] = ranks(table, np.array(targets), rows, items).tolist()
    return result


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[list[float]], list[int], list[set[int]]]:
    """Few distinct scores, so that ties are the rule; corpora of 1 to 15 items."""
    corpus, users = draw(st.integers(1, 15)), draw(st.integers(1, 6))
    score = st.sampled_from([-1.5, -0.0, 0.0, 0.25, 3.0])
    item = st.integers(0, corpus - 1)
    scores = draw(
        st.lists(st.lists(score, min_size=corpus, max_size=corpus), min_size=users, max_size=users)
    )
    targets = draw(st.lists(item, min_size=users, max_size=users))
    seen = draw(st.lists(st.sets(item), min_size=users, max_size=users))
    return scores, targets, seen


@settings(deadline=None)
@given(cases())
def test_ranks_are_those_of_the_definition(
    case: tuple[list[list[float]], list[int], list[set[int]]],
) -> None:
    scores, targets, seen = case
    expected = [naive_rank(*user) for user in zip(scores, targets, seen, strict=True)]
    assert ranked(scores, targets, seen) == expected


def test_metrics_of_64_users_are_those_of_the_definition() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(64, 90)).round(1)
    targets = rng.integers(90, size=64).tolist()
    seen = [set(rng.integers(90, size=20).tolist()) for _ in range(64)]
    users = zip(scores.astype(np.float32).tolist(), targets, seen, strict=True)
    expected = [naive_rank(*user) for user in users]
    measured = ranked(scores.tolist(), targets, seen)
    assert measured == expected
    assert metrics(np.array(measured), 90) == pytest.approx(naive_metrics(expected, 90), abs=1e-15)


@settings(deadline=None)
@given(st.integers(1, 1500), st.data())
def test_metrics_are_those_of_the_definition(corpus: int, data: st.DataObject) -> None:
    rank = data.draw(st.lists(st.integers(1, corpus), min_size=1, max_size=30))
    measured = metrics(np.array(rank), corpus)
    assert set(measured) == set(metric_names(corpus))
    assert measured == pytest.approx(naive_metrics(rank, corpus), abs=1e-12)


@pytest.mark.parametrize(
    ("corpus", "lacking"),
    [
        (1, {"ndcg@10", "hr@10", "hr@1000"}),
        (9, {"ndcg@10", "hr@10"}),
        (10, {"ndcg@50", "hr@50"}),
        (999, {"hr@1000"}),
        (1000, set()),
    ],
)
def test_a_cutoff_beyond_the_corpus_is_missing(corpus: int, lacking: set[str]) -> None:
    measured = metrics(np.array([1]), corpus)
    assert not lacking & set(measured)
    assert {"ndcg@1", "hr@1", "mrr"} <= set(measured)
    assert ("hr@10" in measured) == (corpus >= 10)


def test_an_unknown_metric_and_a_rank_beyond_the_corpus_are_refused() -> None:
    for name in ("ndcg@5", "hr@200", "precision@10", "hr@ten"):
        with pytest.raises(HstuError, match="no metric"):
            contributions(name, np.array([1]), 100)
    for rank in (0, 101):
        with pytest.raises(HstuError, match="not within 1 to 100"):
            metrics(np.array([1, rank]), 100)


def test_equal_scores_earn_nothing() -> None:
    assert ranked([[0.5] * 100], [3], [set()]) == [100]
    assert metrics(np.array([100]), 100)["hr@10"] == 0.0


def test_a_seen_target_is_still_ranked_and_other_seen_items_are_not() -> None:
    assert ranked([[9.0, 8.0, 7.0]], [2], [{0, 2}]) == [2]


def test_the_cutoff_and_the_discount() -> None:
    at = {rank: metrics(np.array([rank]), 20) for rank in (1, 10, 11)}
    assert at[1] == dict.fromkeys(("ndcg@1", "ndcg@10", "hr@1", "hr@10", "mrr"), 1.0)
    assert (at[10]["ndcg@10"], at[10]["hr@10"]) == (pytest.approx(1 / math.log2(11)), 1.0)
    assert (at[11]["ndcg@10"], at[11]["hr@10"], at[11]["mrr"]) == (0.0, 0.0, 1 / 11)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_a_score_that_is_no_number_is_refused(bad: float) -> None:
    with pytest.raises(HstuError, match=r"1 of 2 users .* first: row 1") as error:
        ranked([[1.0, 2.0], [1.0, bad]], [0, 0], [set(), {1}])
    assert error.value.exit_code == 1


def test_no_users_is_no_result() -> None:
    with pytest.raises(HstuError, match="no users"):
        metrics(np.array([], dtype=np.int64), 10)
