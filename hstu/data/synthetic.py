"""A small data set in the shape of MovieLens, with structure that a sequence model can find.

Planted: films belong to series, and a viewer often goes on with the next film of a series; else
the genre of the last film decides that of the next one: mostly the genre that follows it, at times
the same or a favourite of the viewer. Four films of five are seen by few viewers, so that a film's
genre says more than its own record.

All draws are of integers from PCG64, so that a seed gives the same data on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hstu.data.errors import ExitCode, HstuError
from hstu.data.files import new_folder, write_table
from hstu.data.items import Items

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

_GENRES = (
    "Adventure",
    "Animation",
    "Comedy",
    "Crime",
    "Documentary",
    "Drama",
    "Horror",
    "Musical",
    "Romance",
    "Western",
)
_SERIES_LENGTH = 4
# One film in five is known: four times as likely to be chosen.
_KNOWN_ONE_IN = 5
_KNOWN_WEIGHT = 4
_START = 946_684_800  # 2000-01-01T00:00:00Z
_HOUR, _DAY = 3_600, 86_400
# Chances in percent, each of the cases that are left.
_NEXT_OF_SERIES = 45
_STAY_IN_GENRE = 25
_GO_TO_FAVOURITE = 15
_SECOND_GENRE = 30
_SAME_SECOND = 10
_NEW_SESSION = 20


@dataclass(frozen=True)
class Shape:
    """How large the data set is; each user has ``shortest`` to ``longest`` events."""

    users: int = 400
    items: int = 320
    genres: int = 8
    shortest: int = 8
    longest: int = 30

    def __post_init__(self) -> None:
        problem = None
        if not 2 <= self.genres <= len(_GENRES):
            problem = f"genres must be 2 to {len(_GENRES)}"
        elif self.users < 1:
            problem = "users must be at least 1"
        elif self.items < self.genres * _SERIES_LENGTH:
            problem = f"items must be at least {_SERIES_LENGTH} a genre"
        elif not 3 <= self.shortest <= self.longest <= self.items:
            problem = "events a user must be at least 3 and at most the items"
        if problem:
            raise HstuError(problem, exit_code=ExitCode.USAGE)


@dataclass(frozen=True, eq=False)
class _World:
    """The films [X]: ``genre`` int64, ``follows`` int64 (next of the series or -1), ``weight``."""

    genre: NDArray[np.int64]
    follows: NDArray[np.int64]
    weight: NDArray[np.int64]
    next_genre: NDArray[np.int64]


@dataclass
class _Viewer:
    """One user on the way through the films."""

    world: _World
    rng: np.random.Generator
    favourites: NDArray[np.int64]
    seen: NDArray[np.bool_]
    time: int
    films: list[int] = field(default_factory=list)
    times: list[int] = field(default_factory=list)

    def watch(self) -> None:
        """Choose the next film and the time of watching it."""
        self._pass_time()
        film = self._choose()
        self.seen[film] = True
        self.films.append(film)
        self.times.append(self.time)

    def _choose(self) -> int:
        if self.films:
            sequel = int(self.world.follows[self.films[-1]])
            if sequel >= 0 and not self.seen[sequel] and _chance(self.rng, _NEXT_OF_SERIES):
                return sequel
        weight = np.where(self.seen, 0, self.world.weight)
        in_genre = np.where(self.world.genre == self._genre(), weight, 0)
        return _draw(self.rng, in_genre if in_genre.any() else weight)

    def _genre(self) -> int:
        if self.films:
            last = int(self.world.genre[self.films[-1]])
            if _chance(self.rng, _STAY_IN_GENRE):
                return last
            if not _chance(self.rng, _GO_TO_FAVOURITE):
                return int(self.world.next_genre[last])
        return int(self.favourites[self.rng.integers(len(self.favourites))])

    def _pass_time(self) -> None:
        if _chance(self.rng, _NEW_SESSION):
            self.time += int(self.rng.integers(_DAY, 20 * _DAY))
        elif not _chance(self.rng, _SAME_SECOND):
            self.time += int(self.rng.integers(30, 3 * _HOUR))


def synthesize(seed: int, out: Path, shape: Shape | None = None) -> None:
    """Write ``interactions.parquet`` and ``items.parquet`` into the folder ``out``.

    The folder appears whole or not at all; one that is there with other files is refused. Item
    ids have gaps, so that an id taken for an index shows.
    """
    shape = shape or Shape()
    if out.exists() and {path.name for path in out.iterdir()} - {"interactions.parquet", _ITEMS}:
        raise HstuError("the folder holds other files", where=str(out), hint="name a new folder")
    rng = np.random.Generator(np.random.PCG64(seed))
    world, items = _make_world(rng, shape)
    users, films, times = [], [], []
    for user in range(1, shape.users + 1):
        viewer = _viewer(rng, world, shape)
        for _ in range(int(rng.integers(shape.shortest, shape.longest + 1))):
            viewer.watch()
        users.append(np.full(len(viewer.films), user))
        films.append(viewer.films)
        times.append(viewer.times)
    stamps = np.concatenate(times)
    order = np.argsort(stamps, kind="stable")
    columns = [np.concatenate(users)[order], items.ids[np.concatenate(films)[order]], stamps[order]]
    with new_folder(out) as folder:
        names = ["user_id", "item_id", "timestamp"]
        write_table(folder / "interactions.parquet", pa.table(columns, names=names))
        items.write(folder / _ITEMS)


_ITEMS = "items.parquet"


def _make_world(rng: np.random.Generator, shape: Shape) -> tuple[_World, Items]:
    count = shape.items
    series = np.arange(count) // _SERIES_LENGTH
    # A film's place in the corpus says nothing: series are spread over it.
    place = _shuffled(rng, count)
    genre = np.empty(count, np.int64)
    genre[place] = series % shape.genres
    follows = np.full(count, -1)
    same = series[1:] == series[:-1]
    follows[place[:-1][same]] = place[1:][same]
    weight = np.where(_shuffled(rng, count) < count // _KNOWN_ONE_IN, _KNOWN_WEIGHT, 1)
    circle = _shuffled(rng, shape.genres)
    next_genre = np.empty(shape.genres, np.int64)
    next_genre[circle] = np.roll(circle, -1)
    years = np.empty(count, np.int64)
    years[place] = rng.integers(1950, 1985, count)[series * _SERIES_LENGTH]
    years[place] += 3 * (np.arange(count) % _SERIES_LENGTH)
    ids = np.cumsum(rng.integers(1, 4, count))
    second = np.where(
        rng.integers(100, size=count) < _SECOND_GENRE,
        rng.integers(shape.genres, size=count),
        genre,
    )
    titles = [f"Film {index + 1:03d} ({year})" for index, year in enumerate(years.tolist())]
    pairs = zip(genre.tolist(), second.tolist(), strict=True)
    genres = ["|".join(sorted({_GENRES[a], _GENRES[b]})) for a, b in pairs]
    return _World(genre, follows, weight, next_genre), Items.of_columns(ids, titles, genres, years)


def _viewer(rng: np.random.Generator, world: _World, shape: Shape) -> _Viewer:
    favourites = _shuffled(rng, shape.genres)[:2]
    start = _START + int(rng.integers(0, 700 * _DAY))
    return _Viewer(world, rng, favourites, np.zeros(shape.items, np.bool_), start)


def _shuffled(rng: np.random.Generator, count: int) -> NDArray[np.int64]:
    """0 .. count - 1 in random order, from 62-bit keys."""
    return np.argsort(rng.integers(1 << 62, size=count), kind="stable").astype(np.int64)


def _chance(rng: np.random.Generator, percent: int) -> bool:
    return bool(rng.integers(100) < percent)


def _draw(rng: np.random.Generator, weight: NDArray[np.int64]) -> int:
    """An index, with a chance in proportion to its integer weight."""
    sums = np.cumsum(weight)
    return int(np.searchsorted(sums, rng.integers(sums[-1]), side="right"))
