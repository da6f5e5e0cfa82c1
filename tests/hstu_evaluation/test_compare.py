from __future__ import annotations

import json
import math
import statistics
from typing import TYPE_CHECKING

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from rank_samples import canonical, subset

from hstu.data.errors import HstuError
from hstu.data.items import Items
from hstu.data.readers import Interactions, RawData
from hstu.data.split import SplitOptions, write_split
from hstu.evaluation.compare import Ranks, compare, compare_by_decile
from hstu.evaluation.compare_command import compare_command
from hstu.evaluation.deciles import item_deciles, popularity_report, target_deciles
from hstu.evaluation.rank_files import (
    CanonicalRanks,
    SubsetRanks,
    read_canonical_ranks,
    read_subset_ranks,
    write_canonical_ranks,
    write_subset_ranks,
)

if TYPE_CHECKING:
    from pathlib import Path


def gain(rank: int) -> float:
    return 1 / math.log2(rank + 1) if rank <= 10 else 0.0


def naive(base: list[list[int]], candidate: list[list[int]]) -> tuple[float, float, float | None]:
    """Mean difference, error over users, error over seeds, with the standard library alone."""
    sides = [[[gain(rank) for rank in seed] for seed in side] for side in (base, candidate)]
    per_user = [[statistics.fmean(users) for users in zip(*side, strict=True)] for side in sides]
    gaps = [b - a for a, b in zip(*per_user, strict=True)]
    means = [[statistics.fmean(seed) for seed in side] for side in sides]
    freedom = sum(len(side) - 1 for side in means)
    noise = None
    if freedom:
        squares = sum((m - statistics.fmean(side)) ** 2 for side in means for m in side)
        noise = math.sqrt(squares / freedom * sum(1 / len(side) for side in means))
    return statistics.fmean(gaps), statistics.stdev(gaps) / math.sqrt(len(gaps)), noise


@st.composite
def sides(draw: st.DrawFn) -> tuple[list[list[int]], list[list[int]]]:
    users = draw(st.integers(2, 12))
    seed = st.lists(st.integers(1, 30), min_size=users, max_size=users)
    side = st.lists(seed, min_size=1, max_size=3)
    return draw(side), draw(side)


@settings(deadline=None)
@given(sides())
def test_the_difference_is_that_of_the_definition(
    case: tuple[list[list[int]], list[list[int]]],
) -> None:
    base, candidate = case
    mean, user_error, seed_error = naive(base, candidate)
    found = compare([canonical(seed) for seed in base], [canonical(seed) for seed in candidate])
    assert found.difference == pytest.approx(mean, abs=1e-12)
    assert found.candidate - found.base == pytest.approx(mean, abs=1e-12)
    assert found.user_error == pytest.approx(user_error, abs=1e-12)
    assert found.seed_error == (seed_error and pytest.approx(seed_error, abs=1e-12))
    assert found.seeds == (len(base), len(candidate))
    reach = 2 * math.hypot(user_error, seed_error or 0.0)
    assert (found.low, found.high) == pytest.approx((mean - reach, mean + reach), abs=1e-12)


def test_one_seed_a_side_leaves_the_noise_of_training_unknown() -> None:
    found = compare([canonical([1, 2, 3])], [canonical([1, 1, 1])])
    assert found.seed_error is None
    assert found.to_json()["seed_error"] is None


@pytest.mark.parametrize(
    ("base", "candidate", "verdict"),
    [([11] * 9 + [1], [1] * 10, "better"), ([1] * 10, [50] * 10, "worse"),
     ([1, 50] * 5, [50, 1] * 5, "within the noise")],
)  # fmt: skip
def test_the_verdict(base: list[int], candidate: list[int], verdict: str) -> None:
    assert compare([canonical(base)], [canonical(candidate)]).verdict == verdict


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (canonical([1, 2, 3], target="test"), "the target differs"),
        (canonical([1, 2, 3], split="e" * 64), "the split differs"),
        (canonical([1, 2, 3], corpus=99), "the corpus differs"),
        (canonical([1, 2, 3], users=[0, 1, 7]), "same users: 2 differ"),
        (canonical([1, 2]), "same users: 1 differ"),
        (subset([1, 2, 3]), "kind of evaluation differs: CanonicalRanks and SubsetRanks"),
    ],
)
def test_what_is_not_alike_is_not_compared(other: Ranks, message: str) -> None:
    for first, second in (([canonical([1, 2, 3])], [other]), ([canonical([1, 2, 3]), other], [])):
        with pytest.raises(HstuError, match=message):
            compare(first, second or first[:1])  # type: ignore[type-var]


def test_too_few_are_not_compared() -> None:
    with pytest.raises(HstuError, match="at least one seed"):
        compare([], [canonical([1, 2])])
    with pytest.raises(HstuError, match="too few"):
        compare([canonical([1])], [canonical([1])])


def test_rank_files_keep_what_they_are_ranks_of(tmp_path: Path) -> None:
    write_canonical_ranks(tmp_path / "a", canonical([3, 1, 2], target="test"))
    write_subset_ranks(tmp_path / "a", subset([9, 8], seed=5))
    full, some = read_canonical_ranks(tmp_path / "a"), read_subset_ranks(tmp_path / "a")
    assert isinstance(full, CanonicalRanks)
    assert (full.target, full.corpus, full.ranks.tolist()) == ("test", 100, [3, 1, 2])
    assert isinstance(some, SubsetRanks)
    assert (some.sample.seed, some.users.tolist(), some.ranks.tolist()) == (5, [0, 1], [9, 8])
    first = (tmp_path / "a" / "ranks.parquet").read_bytes()
    write_canonical_ranks(tmp_path / "b", canonical([3, 1, 2], target="test"))
    assert (tmp_path / "b" / "ranks.parquet").read_bytes() == first


def test_one_kind_of_rank_file_is_not_read_as_the_other(tmp_path: Path) -> None:
    write_canonical_ranks(tmp_path / "full", canonical([1, 2]))
    write_subset_ranks(tmp_path / "some", subset([1, 2]))
    (tmp_path / "posing.parquet").write_bytes((tmp_path / "some/subset-ranks.parquet").read_bytes())
    for place in (tmp_path / "some", tmp_path / "posing.parquet"):
        with pytest.raises(HstuError, match=r"ranks\.parquet|not ranks of schema"):
            read_canonical_ranks(place)
    for place in (tmp_path / "full", tmp_path / "full" / "ranks.parquet"):
        with pytest.raises(HstuError, match=r"ranks\.parquet|not ranks of schema"):
            read_subset_ranks(place)


@pytest.mark.parametrize(
    ("ranks", "message"),
    [
        (canonical([1, 101]), "not within 1 to 100"),
        (canonical([0, 1]), "not within 1 to 100"),
        (canonical([1, 2], users=[4, 4]), "named once"),
        (canonical([1, 2], users=[5, 4]), "named once"),
    ],
)
def test_ranks_that_cannot_be_are_refused(
    tmp_path: Path, ranks: CanonicalRanks, message: str
) -> None:
    write_canonical_ranks(tmp_path, ranks)
    with pytest.raises(HstuError, match=message):
        read_canonical_ranks(tmp_path)


def test_items_of_equal_popularity_are_in_one_decile() -> None:
    assert item_deciles(np.arange(20)).tolist() == [1 + k // 2 for k in range(20)]
    assert item_deciles(np.array([0] * 8 + [5, 9])).tolist() == [1] * 8 + [9, 10]
    assert item_deciles(np.array([7])).tolist() == [1]


@pytest.fixture
def split(tmp_path: Path) -> Path:
    """Item k has k training events; user k has the validation target k + 1."""
    events = []
    for user in range(10):
        seen = [item for item in range(1, 11) if item > user]
        events += [(user, item, time) for time, item in enumerate(seen)]
        events += [(user, user + 1, 90), (user, 1, 91)]
    items = Items.of_columns(np.arange(1, 11), [""] * 10, [""] * 10, np.zeros(10, np.int64))
    raw = RawData(Interactions(*np.array(events).T), items, str)
    write_split(raw, "tiny", tmp_path / "split", SplitOptions(allow_duplicates=True))
    return tmp_path / "split"


def test_deciles_add_up_to_all(split: Path) -> None:
    deciles = target_deciles(split, "validation")
    assert deciles.deciles.tolist() == list(range(1, 11))
    base = [canonical([k] * 10, split=deciles.split, corpus=10) for k in (1, 2)]
    candidate = [canonical([10, *[1] * 9], split=deciles.split, corpus=10)]
    rows = compare_by_decile(base, candidate, deciles)
    assert [row.users for row in rows] == [1] * 10
    found = compare(base, candidate)
    assert np.mean([row.difference for row in rows]) == pytest.approx(found.difference)
    assert rows[0].low is None, "one user has no spread"
    report = popularity_report(candidate, deciles, ["hr@1", "mrr"])
    assert [row.metrics["hr@1"].mean for row in report] == [0.0] + [1.0] * 9
    assert sum(row.items for row in report) == 10


def test_deciles_of_another_split_or_target_are_refused(split: Path) -> None:
    digest = target_deciles(split, "validation").split
    ranks = [canonical([1] * 10, split=digest, corpus=10)]
    with pytest.raises(HstuError, match="target differs"):
        compare_by_decile(ranks, ranks, target_deciles(split, "test"))
    with pytest.raises(HstuError, match="another split or target"):
        popularity_report([canonical([1] * 10)], target_deciles(split, "validation"), ["mrr"])


def test_a_decile_without_users_has_no_numbers(split: Path) -> None:
    deciles = target_deciles(split, "test")  # everybody's is item 1
    ranks = [canonical([1] * 10, target="test", split=deciles.split, corpus=10)]
    rows = compare_by_decile(ranks, ranks, deciles)
    assert [row.users for row in rows] == [10] + [0] * 9
    assert rows[1].base is None
    assert rows[1].difference is None


def test_the_command(tmp_path: Path, split: Path) -> None:
    digest = target_deciles(split, "validation").split
    for name, first in (("a", 1), ("b", 2), ("c", 3)):
        ranks = canonical([first] * 9 + [9], split=digest, corpus=10)
        write_canonical_ranks(tmp_path / name, ranks)
    write_subset_ranks(tmp_path / "c", subset([1, 2]))
    (tmp_path / "d").mkdir()
    write_subset_ranks(tmp_path / "d", subset([1, 3]))
    a, b, c, d = (str(tmp_path / name) for name in "abcd")

    def run(*words: str) -> tuple[int, str]:
        done = CliRunner().invoke(compare_command, words)
        if isinstance(done.exception, HstuError):
            return done.exception.exit_code, str(done.exception)
        return done.exit_code, done.output

    status, text = run(a, b, "--metric", "mrr", "--json", "--split", str(split))
    assert status == 0
    found = json.loads(text)
    assert found["difference"] == pytest.approx(-0.45)
    assert (found["kind"], found["seeds"], len(found["deciles"])) == ("canonical", [1, 1], 10)
    status, text = run("--base", a, "--base", b, "--candidate", c)
    assert status == 0
    assert "seeds 2:1" in text
    assert "within the noise" in text, "the two seeds of the base are far apart"
    status, text = run("--base", a, "--base", f"{b}/../a", "--candidate", c)
    assert (status, "it is one seed" in text) == (2, True), "its noise would be taken for none"
    assert run("--subset", c, d)[0] == 0
    assert "subset ndcg@10" in run("--subset", c, d)[1]
    status, text = run(a, d)
    assert status == 6
    assert "no ranks.parquet" in text
    assert run(a)[0] == run(a, b, "--base", c)[0] == run("--base", a)[0] == 2
    assert run(a, b, "--metric", "ndcg@7")[0] == 2
