"""Raw data sets as their owners ship them, or as generic tables: events and items, checked."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from hstu.data.errors import ExitCode, HstuError
from hstu.data.items import Items
from hstu.data.sources import missing_message
from hstu.data.tables import RawTable, TextLayout, read_parquet, read_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

Format = Literal["ml-100k", "ml-1m", "ml-20m", "atomic", "generic"]

_EVENT_COLUMNS = ("user_id", "item_id", "timestamp")
_YEAR_AT_END = re.compile(r"\((\d{4})\)$")
_YEAR = re.compile(r"\d{4}")
# Year 5138 in seconds, 1973 in milliseconds: nothing real lies on the wrong side.
_LARGEST_SECOND = 10**11
# The order of the flags in u.item.
_ML_100K_GENRES = (
    "unknown",
    "Action",
    "Adventure",
    "Animation",
    "Children's",
    "Comedy",
    "Crime",
    "Documentary",
    "Drama",
    "Fantasy",
    "Film-Noir",
    "Horror",
    "Musical",
    "Mystery",
    "Romance",
    "Sci-Fi",
    "Thriller",
    "War",
    "Western",
)


@dataclass(frozen=True, eq=False)
class Interactions:
    """E events in file order: ``users``, ``items`` and ``timestamps`` (Unix seconds), int64 [E]."""

    users: NDArray[np.int64]
    items: NDArray[np.int64]
    timestamps: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.users)

    def take(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> Interactions:
        """The events of ``rows`` (indices or a mask), in that order."""
        return Interactions(self.users[rows], self.items[rows], self.timestamps[rows])


@dataclass(frozen=True, eq=False)
class RawData:
    """A data set as read. ``place`` names the file and line of an event by its row."""

    interactions: Interactions
    items: Items
    place: Callable[[int], str]


def read_source(folder: Path, source_format: Format | Literal["auto"] = "auto") -> RawData:
    """Read the data set in ``folder``.

    ``auto`` takes the format by the files that are there. Raises ``HstuError`` that names file
    and line or column: nothing to read, missing columns, ids or timestamps that are no integers,
    events of items that the items file lacks.
    """
    if not folder.is_dir():
        raise HstuError(
            "the data set is missing", where=str(folder), hint=missing_message(folder.name, folder)
        )
    chosen = detect(folder) if source_format == "auto" else source_format
    table, names, items = _READERS[chosen](folder)
    columns = [table.integers(name) for name in names]
    for name, values in zip(names[:2], columns[:2], strict=True):
        if (values < 0).any():
            row = int(np.argmax(values < 0))
            raise HstuError(f"{name} is negative: {values[row]}", where=table.place(row))
    _require_seconds(table, columns[2])
    interactions = Interactions(*columns)
    corpus = items or _items_of(interactions)
    _require_known(table, interactions, corpus)
    return RawData(interactions, corpus, table.place)


def detect(folder: Path) -> Format:
    """The one format whose events file is in ``folder``; none or several are an error."""
    found: list[tuple[Format, str]] = [
        (name, path.name) for name, pattern in _EVENT_FILES for path in sorted(folder.glob(pattern))
    ]
    if len(found) == 1:
        return found[0][0]
    if not found:
        known = ", ".join(pattern for _, pattern in _EVENT_FILES)
        raise HstuError(
            f"no events file here; one of these was expected: {known}",
            where=str(folder),
            hint=missing_message(folder.name, folder),
        )
    raise HstuError(
        f"several events files: {', '.join(name for _, name in found)}",
        where=str(folder),
        hint="leave one of them, or name the format with --format",
        exit_code=ExitCode.USAGE,
    )


_Read = tuple[RawTable, tuple[str, str, str], Items | None]


def _read_ml_100k(folder: Path) -> _Read:
    names = ("user_id", "item_id", "rating", "timestamp")
    events = read_text(folder / "u.data", TextLayout("\t", names=names), _EVENT_COLUMNS)
    flags = tuple(f"genre {name}" for name in _ML_100K_GENRES)
    columns = ("item_id", "title", "release_date", "video_release_date", "url", *flags)
    layout = TextLayout("|", encoding="latin-1", names=columns)
    table = read_text(folder / "u.item", layout, ("item_id", "title", *flags))
    marks = np.stack([table.integers(flag) for flag in flags], axis=1) == 1
    genre_names = np.array(_ML_100K_GENRES, dtype=object)
    genres = ["|".join(genre_names[row]) for row in marks]
    return events, _EVENT_COLUMNS, _titled_items(table, "item_id", genres)


def _read_ml_1m(folder: Path) -> _Read:
    names = ("user_id", "item_id", "rating", "timestamp")
    events = read_text(folder / "ratings.dat", TextLayout("::", names=names), _EVENT_COLUMNS)
    layout = TextLayout("::", encoding="latin-1", names=("item_id", "title", "genres"))
    table = read_text(folder / "movies.dat", layout, ("item_id", "title", "genres"))
    return events, _EVENT_COLUMNS, _titled_items(table, "item_id", table.texts("genres"))


def _read_ml_20m(folder: Path) -> _Read:
    columns = ("userId", "movieId", "timestamp")
    layout = TextLayout(",", quoted=True)
    events = read_text(folder / "ratings.csv", layout, columns)
    table = read_text(folder / "movies.csv", layout, ("movieId", "title", "genres"))
    return events, columns, _titled_items(table, "movieId", table.texts("genres"))


def _read_atomic(folder: Path) -> _Read:
    events_path = _only(folder, "*.inter")
    layout = TextLayout("\t")
    events = read_text(events_path, layout, _EVENT_COLUMNS)
    path = events_path.with_suffix(".item")
    if not path.is_file():
        return events, _EVENT_COLUMNS, None
    optional = ("movie_title", "release_year", "class", "genre")
    table = read_text(path, layout, ("item_id",), optional)
    titles = _first_of(table, ("movie_title",))
    genres = ["|".join(text.split()) for text in _first_of(table, ("class", "genre"))]
    # The published ml-100k.item has words in this column for two items: unknown.
    years = [int(y) if _YEAR.fullmatch(y) else 0 for y in _first_of(table, ("release_year",))]
    ids = table.integers("item_id")
    return events, _EVENT_COLUMNS, _items(table, ids, titles, genres, np.array(years, np.int64))


def _read_generic(folder: Path) -> _Read:
    events = _read_table(_only(folder, "interactions.*"), _EVENT_COLUMNS, ())
    if not any(folder.glob("items.*")):
        return events, _EVENT_COLUMNS, None
    table = _read_table(_only(folder, "items.*"), ("item_id",), ("title", "genres", "year"))
    titles, genres = _first_of(table, ("title",)), _first_of(table, ("genres",))
    years = np.zeros(table.rows, np.int64)
    if "year" in table.columns:
        years = table.integers_or_zero("year")
    return events, _EVENT_COLUMNS, _items(table, table.integers("item_id"), titles, genres, years)


def _read_table(path: Path, needed: Sequence[str], optional: Sequence[str]) -> RawTable:
    if path.suffix == ".parquet":
        return read_parquet(path, needed, optional)
    if path.suffix == ".csv":
        return read_text(path, TextLayout(",", quoted=True), needed, optional)
    raise HstuError("neither .parquet nor .csv", where=str(path))


def _only(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise HstuError(
            f"one file {pattern} was expected, found: {names}",
            where=str(folder),
            hint="leave one of them",
        )
    return found[0]


def _first_of(table: RawTable, names: Sequence[str]) -> list[str]:
    """The texts of the first column of ``names`` that is there, else as many empty ones."""
    for name in names:
        if name in table.columns:
            return table.texts(name)
    return [""] * table.rows


def _titled_items(table: RawTable, id_column: str, genres: Sequence[str]) -> Items:
    """Items whose titles end with the year in brackets, as all MovieLens files have them."""
    titles = table.texts("title")
    found = (_YEAR_AT_END.search(title) for title in titles)
    years = np.array([int(match[1]) if match else 0 for match in found], dtype=np.int64)
    return _items(table, table.integers(id_column), titles, genres, years)


def _items(
    table: RawTable,
    ids: NDArray[np.int64],
    titles: Sequence[str],
    genres: Sequence[str],
    years: NDArray[np.int64],
) -> Items:
    try:
        return Items.of_columns(ids, titles, genres, years)
    except HstuError as error:
        raise HstuError(error.message, where=str(table.path), hint=error.hint) from error


def _items_of(interactions: Interactions) -> Items:
    """A corpus of all items that occur, by id, of which nothing else is known."""
    ids = np.unique(interactions.items)
    nothing = [""] * len(ids)
    return Items.of_columns(ids, nothing, nothing, np.zeros(len(ids), np.int64))


def _require_seconds(table: RawTable, timestamps: NDArray[np.int64]) -> None:
    far = np.abs(timestamps) > _LARGEST_SECOND
    if far.any():
        row = int(np.argmax(far))
        raise HstuError(
            f"timestamp {timestamps[row]} is not in Unix seconds",
            where=table.place(row),
            hint="it looks like milliseconds or finer: divide the column",
        )


def _require_known(table: RawTable, interactions: Interactions, items: Items) -> None:
    """Every event's item is in the corpus."""
    unknown = ~np.isin(interactions.items, items.ids)
    if not unknown.any():
        return
    row = int(np.argmax(unknown))
    count = len(np.unique(interactions.items[unknown]))
    raise HstuError(
        f"{count} items of the events are not in the items file, first: {interactions.items[row]}",
        where=table.place(row),
        hint="add them to the items file, or remove that file to take all items that occur",
    )


_EVENT_FILES: tuple[tuple[Format, str], ...] = (
    ("ml-100k", "u.data"),
    ("ml-1m", "ratings.dat"),
    ("ml-20m", "ratings.csv"),
    ("atomic", "*.inter"),
    ("generic", "interactions.parquet"),
    ("generic", "interactions.csv"),
)
_READERS: dict[Format, Callable[[Path], _Read]] = {
    "ml-100k": _read_ml_100k,
    "ml-1m": _read_ml_1m,
    "ml-20m": _read_ml_20m,
    "atomic": _read_atomic,
    "generic": _read_generic,
}
FORMATS: tuple[str, ...] = ("auto", *_READERS)
