from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

from hstu.data.errors import HstuError
from hstu.data.files import sha256
from hstu.data.readers import read_source
from hstu.data.split import SplitOptions, write_split
from hstu.data.synthetic import Shape, synthesize

if TYPE_CHECKING:
    from pathlib import Path

SMALL = Shape(users=60, items=80, genres=5, shortest=5, longest=20)


def test_a_seed_gives_the_same_bytes_in_another_process(tmp_path: Path) -> None:
    synthesize(3, tmp_path / "here", Shape(users=60, items=80, genres=5))
    command = [sys.executable, "-m", "hstu", "data", "synthesize", "--seed", "3", "--users", "60"]
    command += ["--items", "80", "--genres", "5", "--out", str(tmp_path / "there")]
    subprocess.run(
        command, check=True, env={"PYTHONHASHSEED": "9", "PYTHONPATH": ":".join(sys.path)}
    )
    synthesize(4, tmp_path / "other", Shape(users=60, items=80, genres=5))
    digests = {
        name: [sha256(tmp_path / name / f"{part}.parquet") for part in ("interactions", "items")]
        for name in ("here", "there", "other")
    }
    assert digests["here"] == digests["there"]
    assert digests["here"][0] != digests["other"][0]


def test_the_numbers_of_the_default_set_are_pinned(tmp_path: Path) -> None:
    synthesize(7, tmp_path / "set")
    data = read_source(tmp_path / "set")
    events = data.interactions
    content = np.stack([events.users, events.items, events.timestamps]).astype("<i8")
    assert len(np.unique(events.users)) == 400
    assert len(data.items) == 320
    assert len(data.items.genre_names) == 8
    assert len(events) == 7_668
    assert int(content.sum()) == 7_495_492_445_740


def test_it_splits_and_looks_like_movielens(tmp_path: Path) -> None:
    synthesize(1, tmp_path / "set", SMALL)
    data = read_source(tmp_path / "set")
    write_split(data, "synthetic", tmp_path / "split", SplitOptions())
    assert data.items.titles[0].startswith("Film 001 (")
    assert all(f"({y})" in t for t, y in zip(data.items.titles, data.items.years, strict=True))
    assert data.items.genres.any(axis=1).all()
    assert (np.diff(data.interactions.timestamps) >= 0).all()
    assert data.items.ids.tolist() != list(range(1, 81))  # ids are no indices


def test_what_was_planted_is_there(tmp_path: Path) -> None:
    synthesize(1, tmp_path / "set")
    data = read_source(tmp_path / "set")
    order = np.lexsort((data.interactions.timestamps, data.interactions.users))
    events = data.interactions.take(order)
    film = data.items.index(events.items) - 1
    same_user = events.users[1:] == events.users[:-1]
    before, after = film[:-1][same_user], film[1:][same_user]

    # The next film of a series: the commonest steps are far commoner than an average one.
    steps, times = np.unique(before * len(data.items) + after, return_counts=True)
    assert len(steps) > 1000
    assert np.sort(times)[-100:].mean() > 5 * times.mean()

    # A genre has a follower: after its films, one other genre is far commoner than elsewhere.
    genres = data.items.genres.astype(np.float64)
    follows = genres[before].T @ genres[after] / genres[before].sum(axis=0)[:, None]
    lift = follows / genres[after].mean(axis=0)
    assert (lift.max(axis=1) > 1.5).all()

    # Few films are known: the better half has most of the events.
    counts = np.sort(np.bincount(film, minlength=len(data.items)))
    assert counts[len(counts) // 2 :].sum() > 0.7 * counts.sum()
    assert np.median(counts) < 25


@pytest.mark.parametrize(
    "shape",
    [{"genres": 1}, {"genres": 11}, {"users": 0}, {"items": 12}, {"shortest": 2}, {"longest": 999}],
)
def test_impossible_shapes_are_refused(shape: dict[str, int]) -> None:
    with pytest.raises(HstuError) as error:
        Shape(**shape)
    assert error.value.exit_code == 2


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(HstuError, match="other files"):
        synthesize(1, tmp_path, SMALL)
