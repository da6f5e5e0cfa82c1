from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
import raw_samples as samples

from hstu.data.errors import HstuError
from hstu.data.readers import detect, read_source

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.mark.parametrize(
    ("layout", "name"),
    [
        (samples.ml_100k, "ml-100k"),
        (samples.ml_1m, "ml-1m"),
        (samples.ml_20m, "ml-20m"),
        (samples.atomic, "atomic"),
    ],
)
def test_published_layouts_are_found_and_read(
    tmp_path: Path, layout: Callable[[Path], Path], name: str
) -> None:
    folder = layout(tmp_path / "set")
    assert detect(folder) == name
    data = read_source(folder)
    events = data.interactions
    rows = zip(events.users, events.items, events.timestamps, strict=True)
    assert [tuple(map(int, row)) for row in rows] == samples.EVENTS
    assert data.items.ids.tolist() == [10, 20, 30, 40]  # with the item that nobody rated
    assert data.items.titles[0].startswith("Café Noir")
    assert data.items.years.tolist() == [1994, 0, 1995, 1990]
    first = {data.items.genre_names[k] for k in np.flatnonzero(data.items.genres[0])}
    assert first == {"Comedy", "Thriller"}


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_generic_tables_with_items(tmp_path: Path, suffix: str) -> None:
    events = pd.DataFrame(samples.EVENTS, columns=["user_id", "item_id", "timestamp"])
    events["rating"] = 4.5
    items = pd.DataFrame(
        {
            "item_id": [30, 10, 20],
            "title": ["a, b", None, "c"],
            "genres": ["x|y", None, "y"],
            "year": pd.array([1990, None, 2000], dtype="Int16"),
            "lat": 1.5,
        }
    )
    for name, frame in (("interactions", events), ("items", items)):
        if suffix == "csv":
            frame.to_csv(tmp_path / f"{name}.csv", index=False)
        else:
            frame.to_parquet(tmp_path / f"{name}.parquet")
    data = read_source(tmp_path)
    assert data.interactions.items.tolist() == [event[1] for event in samples.EVENTS]
    assert data.items.ids.tolist() == [30, 10, 20]
    assert data.items.titles == ("a, b", "", "c")
    assert data.items.genre_names == ("x", "y")
    assert data.items.years.tolist() == [1990, 0, 2000]


def test_without_an_items_file_the_corpus_is_what_occurs(tmp_path: Path) -> None:
    data = read_source(samples.csv_set(tmp_path))
    assert data.items.ids.tolist() == [10, 20, 30]
    assert data.items.genre_names == ()


def broken(tmp_path: Path, text: str | bytes) -> HstuError:
    content = text.encode() if isinstance(text, str) else text
    (tmp_path / "interactions.csv").write_bytes(content)
    with pytest.raises(HstuError) as error:
        read_source(tmp_path)
    assert error.value.exit_code == 6
    assert str(tmp_path / "interactions.csv") in str(error.value)
    return error.value


HEAD = "user_id,item_id,timestamp\n1,2,3\n"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (HEAD + "4,abc,6\n", ":3", "item_id is not a whole number: 'abc'"),
        (HEAD + "4,5.5,6\n", ":3", "item_id is not a whole number: '5.5'"),
        (HEAD + "4,5,6\nx9,5,6\n", ":4", "user_id is not a whole number: 'x9'"),
        (HEAD + "4,5,2001-01-01\n", ":3", "timestamp is not a whole number"),
        (HEAD + "4,5,6.25\n", ":3", "timestamp is not a whole number"),
        (HEAD + "4,5,978300760000\n", ":3", "not in Unix seconds"),
        (HEAD + "4,,6\n", ":3", "item_id is missing"),
        (HEAD + "4,-5,6\n", ":3", "item_id is negative"),
        (HEAD + "99999999999999999999,5,6\n", ":3", "not a whole number"),
        (HEAD + "4,5\n", ":3", "2 fields where 3 were expected"),
        (HEAD + "4,5,6,7\n", ":3", "4 fields where 3 were expected"),
        (HEAD.replace("timestamp", "time"), "", "column timestamp missing"),
        (HEAD.replace("user_id,item_id", "user,item"), "", "columns user_id, item_id missing"),
        ("user_id,item_id,timestamp\n", "", "holds no rows"),
        ("", "", "empty"),
        ("\n\n", "", "empty"),
        (b"user_id,item_id,timestamp\n1,\xff,3\n", "", "UTF8"),
    ],
)
def test_bad_text_names_the_file_and_line(
    tmp_path: Path, text: str | bytes, line: str, message: str
) -> None:
    error = broken(tmp_path, text)
    assert message in error.message
    assert error.where == f"{tmp_path / 'interactions.csv'}{line}"


def test_lines_of_files_without_a_header_count_from_their_first(tmp_path: Path) -> None:
    folder = samples.ml_1m(tmp_path)
    path = folder / "ratings.dat"
    path.write_text(path.read_text().replace("2::20::3::10", "2::twenty::3::10"))
    with pytest.raises(HstuError, match="'twenty'") as error:
        read_source(folder)
    assert error.value.where == f"{path}:4"


def test_whole_numbers_written_as_floats_and_a_byte_order_mark_are_read(tmp_path: Path) -> None:
    text = "\ufeffuser_id,item_id,timestamp\r\n1,2,978300760.0\r\n+3, 4,7\r\n\r\n"
    (tmp_path / "interactions.csv").write_bytes(text.encode())
    data = read_source(tmp_path)
    assert data.interactions.users.tolist() == [1, 3]
    assert data.interactions.items.tolist() == [2, 4]
    assert data.interactions.timestamps.tolist() == [978300760, 7]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([1.0, float("nan"), 2.0], "item_id is missing"),
        ([1.0, 2.5, 2.0], "item_id is not a whole number: 2.5"),
        (["1", "two", "3"], "item_id is not a whole number: 'two'"),
        (pd.array([1, None, 2], dtype="Int64"), "item_id is missing"),
        (np.array([1, 2**63, 5], dtype=np.uint64), "item_id is not a whole number"),
    ],
)
def test_bad_parquet_names_the_file_and_row(tmp_path: Path, column: object, message: str) -> None:
    frame = pd.DataFrame({"user_id": [1, 1, 1], "item_id": column, "timestamp": [1, 2, 3]})
    frame.to_parquet(tmp_path / "interactions.parquet")
    with pytest.raises(HstuError, match=message) as error:
        read_source(tmp_path)
    assert error.value.where == f"{tmp_path / 'interactions.parquet'}, row 2"


def test_dates_and_relative_minutes_get_a_hint(tmp_path: Path) -> None:
    frame = pd.DataFrame({"user_id": [1], "item_id": [1], "minute": [5]})
    frame.to_parquet(tmp_path / "interactions.parquet")
    with pytest.raises(HstuError, match="column timestamp missing") as relative:
        read_source(tmp_path)
    assert "start + 60 * minute" in str(relative.value.hint)
    frame["timestamp"] = pd.Timestamp("2001-01-01")
    frame.to_parquet(tmp_path / "interactions.parquet")
    with pytest.raises(HstuError, match="timestamp must hold integers") as dated:
        read_source(tmp_path)
    assert "Unix seconds" in str(dated.value.hint)


def test_an_event_of_an_unlisted_item_names_the_line(tmp_path: Path) -> None:
    samples.csv_set(tmp_path)
    (tmp_path / "items.csv").write_text("item_id,title\n10,a\n20,b\n")
    with pytest.raises(HstuError, match=r"1 items of the events .* first: 30") as error:
        read_source(tmp_path)
    assert error.value.where == f"{tmp_path / 'interactions.csv'}:2"


def test_an_item_listed_twice_names_the_file(tmp_path: Path) -> None:
    samples.csv_set(tmp_path)
    (tmp_path / "items.csv").write_text("item_id\n10\n20\n10\n30\n")
    with pytest.raises(HstuError, match="appear twice, first: 10") as error:
        read_source(tmp_path)
    assert error.value.where == str(tmp_path / "items.csv")


def test_an_official_set_needs_its_items_file(tmp_path: Path) -> None:
    folder = samples.ml_100k(tmp_path)
    (folder / "u.item").unlink()
    with pytest.raises(HstuError, match="missing") as error:
        read_source(folder)
    assert error.value.where == str(folder / "u.item")


def test_two_events_files_are_ambiguous_unless_the_format_is_named(tmp_path: Path) -> None:
    samples.ml_1m(samples.csv_set(tmp_path))
    with pytest.raises(HstuError, match=r"ratings\.dat, interactions\.csv"):
        read_source(tmp_path)
    assert len(read_source(tmp_path, "ml-1m").items) == 4
    assert len(read_source(tmp_path, "generic").items) == 3


def test_an_absent_set_says_where_to_get_it_and_where_to_put_it(tmp_path: Path) -> None:
    folder = tmp_path / "raw" / "ml-100k"
    for error_of in (folder, folder):
        with pytest.raises(HstuError) as error:
            read_source(error_of)
        text = str(error.value)
        assert "make data DATASET=ml-100k" in text
        assert "grouplens.org" in text and str(folder) in text
        folder.mkdir(parents=True, exist_ok=True)
    other = tmp_path / "mine"
    with pytest.raises(HstuError, match="missing") as unknown:
        read_source(other)
    assert f"interactions.parquet or .csv (user_id, item_id, timestamp) into {other}" in str(
        unknown.value
    )
