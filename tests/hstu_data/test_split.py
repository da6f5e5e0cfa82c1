from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
import pytest
import raw_samples as samples
from hypothesis import given, settings
from hypothesis import strategies as st

from hstu.data.errors import HstuError
from hstu.data.files import sha256
from hstu.data.readers import Interactions, read_source
from hstu.data.split import (
    FILES,
    SplitOptions,
    check_split,
    leave_one_out,
    read_events,
    read_manifest,
    write_split,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

Event = tuple[int, int, int]


def rows(events: Interactions) -> list[Event]:
    columns = (events.users, events.items, events.timestamps)
    return [(int(u), int(i), int(t)) for u, i, t in zip(*columns, strict=True)]


def columns(events: Iterable[Event]) -> Interactions:
    return Interactions(*np.array(list(events), dtype=np.int64).reshape(-1, 3).T)


@st.composite
def event_lists(draw: st.DrawFn) -> list[Event]:
    """Users with 3 to 8 events, few distinct times, so that most events tie, in any file order."""
    events: list[Event] = []
    for user in draw(st.lists(st.integers(0, 50), min_size=1, max_size=6, unique=True)):
        times = draw(st.lists(st.integers(-2, 2), min_size=3, max_size=8))
        events += [(user, 100 * user + place, time) for place, time in enumerate(times)]
    return draw(st.permutations(events))


@settings(deadline=None)
@given(event_lists())
def test_split_properties(events: list[Event]) -> None:
    parts = {name: rows(part) for name, part in leave_one_out(columns(events)).items()}
    users = {user for user, _, _ in events}
    assert sorted(event for part in parts.values() for event in part) == sorted(
        events
    )  # all events, each in one part
    for part in ("validation", "test"):
        assert [user for user, _, _ in parts[part]] == sorted(users)
    for user in users:
        # Python's sort is stable, so ties keep the file order.
        expected = sorted((e for e in events if e[0] == user), key=lambda event: event[2])
        assert [e for e in parts["train"] if e[0] == user] == expected[:-2]
        assert [e for e in parts["validation"] if e[0] == user] == [expected[-2]]
        assert [e for e in parts["test"] if e[0] == user] == [expected[-1]]


def test_ties_go_by_file_order() -> None:
    forward = [(1, item, 5) for item in (3, 1, 2)]
    assert rows(leave_one_out(columns(forward))["test"]) == [(1, 2, 5)]
    assert rows(leave_one_out(columns(forward[::-1]))["test"]) == [(1, 3, 5)]


def test_the_folder_holds_the_parts_the_items_and_their_digests(tmp_path: Path) -> None:
    out = tmp_path / "split"
    manifest = write_split(read_source(samples.ml_1m(tmp_path)), "ml", out, SplitOptions())
    assert sorted(path.name for path in out.iterdir()) == sorted([*FILES, "manifest.json"])
    assert manifest["schema"] == "hstu.split/1"
    assert (manifest["users"], manifest["items"], manifest["events"]) == (2, 4, 6)
    for name, file in manifest["files"].items():
        assert file == {"sha256": sha256(out / name), "size": (out / name).stat().st_size}
    assert rows(read_events(out, "train")) == [(2, 20, 10), (7, 10, 50)]
    assert rows(read_events(out, "validation")) == [(2, 10, 10), (7, 20, 70)]
    assert rows(read_events(out, "test")) == [(2, 30, 10), (7, 30, 100)]
    assert pq.read_table(out / "items.parquet").column_names == [
        "item_id",
        "title",
        "genres",
        "year",
    ]
    assert check_split(out) == read_manifest(out) == manifest


def test_equal_data_gives_equal_bytes_in_another_process(tmp_path: Path) -> None:
    source = samples.ml_20m(tmp_path / "source")
    write_split(read_source(source), "source", tmp_path / "here", SplitOptions())
    command = [sys.executable, "-m", "hstu", "data", "split", "--source", str(source)]
    subprocess.run(
        [*command, "--out", str(tmp_path / "there")],
        check=True,
        env={"PYTHONHASHSEED": "5", "PYTHONPATH": ":".join(sys.path)},
    )
    for name in (*FILES, "manifest.json"):
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "there" / name).read_bytes()


@settings(max_examples=5, deadline=None)
@given(event_lists())
def test_the_digest_changes_with_the_events(
    tmp_path_factory: pytest.TempPathFactory, events: list[Event]
) -> None:
    folder = tmp_path_factory.mktemp("digests")
    options = SplitOptions()
    first = write_split(samples.raw(events), "x", folder / "a", options)
    again = write_split(samples.raw(events), "x", folder / "b", options)
    later = [(user, item, time + 1) for user, item, time in events]
    changed = write_split(samples.raw(later), "x", folder / "c", options)
    assert first == again
    assert changed["digest"] != first["digest"]


def test_a_second_call_changes_nothing_and_other_data_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "split"
    first = write_split(samples.raw(samples.EVENTS), "x", out, SplitOptions())
    assert write_split(samples.raw(samples.EVENTS), "x", out, SplitOptions()) == first
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    other = [(user, item, time + 1) for user, item, time in samples.EVENTS]
    with pytest.raises(HstuError, match="another split of x is here"):
        write_split(samples.raw(other), "x", out, SplitOptions())
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["split"]  # nothing half-made is left


def test_what_an_interrupted_writer_left_is_replaced_and_a_stranger_is_not(tmp_path: Path) -> None:
    out = tmp_path / "split"
    out.mkdir()
    (out / "train.parquet").write_bytes(b"half")
    write_split(samples.raw(samples.EVENTS), "x", out, SplitOptions())
    check_split(out)
    (out / "notes.txt").write_text("mine")
    with pytest.raises(HstuError, match=r"other files: notes\.txt"):
        write_split(samples.raw(samples.EVENTS), "x", out, SplitOptions())
    assert (out / "notes.txt").read_text() == "mine"


def test_in_a_clone_a_split_is_made_again_beside_its_pointers(tmp_path: Path) -> None:
    out = tmp_path / "split"
    first = write_split(samples.raw(samples.EVENTS), "x", out, SplitOptions())
    pointers = {name: f"{name}\n" for name in (*(f"{name}.dvc" for name in FILES), ".gitignore")}
    for name, text in pointers.items():
        (out / name).write_text(text)
    for name in FILES:
        (out / name).unlink()
    assert write_split(samples.raw(samples.EVENTS), "x", out, SplitOptions()) == first
    check_split(out)
    assert {name: (out / name).read_text() for name in pointers} == pointers
    (out / "train.parquet.dvc").rename(out / "other.parquet.dvc")
    with pytest.raises(HstuError, match=r"other files: other\.parquet\.dvc"):
        write_split(samples.raw(samples.EVENTS), "x", out, SplitOptions())


@pytest.mark.parametrize("name", [*FILES])
def test_a_changed_or_missing_file_is_found(tmp_path: Path, name: str) -> None:
    write_split(samples.raw(samples.EVENTS), "x", tmp_path / "s", SplitOptions())
    path = tmp_path / "s" / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(HstuError, match="differs from its manifest") as changed:
        check_split(tmp_path / "s")
    assert changed.value.where == str(path)
    path.unlink()
    with pytest.raises(HstuError, match="a file of the split is missing"):
        check_split(tmp_path / "s")


def test_an_edited_manifest_is_found(tmp_path: Path) -> None:
    write_split(samples.raw(samples.EVENTS), "x", tmp_path / "s", SplitOptions())
    path = tmp_path / "s" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["files"]["test.parquet"]["sha256"] = "0" * 64
    path.write_text(json.dumps(manifest))
    with pytest.raises(HstuError, match="digest does not fit"):
        read_manifest(tmp_path / "s")
    path.unlink()
    with pytest.raises(HstuError, match=r"manifest\.json is missing"):
        read_manifest(tmp_path / "s")


def test_duplicate_rows_are_refused_or_kept(tmp_path: Path) -> None:
    events = [(1, 5, 10), (1, 5, 11), (1, 6, 12), (1, 5, 10), (1, 6, 12), (1, 5, 10)]
    source = read_source(samples.csv_set(tmp_path / "x", events))
    with pytest.raises(HstuError, match="3 duplicate rows") as error:
        write_split(source, "x", tmp_path / "s", SplitOptions())
    assert error.value.where == f"{tmp_path / 'x' / 'interactions.csv'}:5"
    assert not (tmp_path / "s").exists()
    kept = write_split(source, "x", tmp_path / "s", SplitOptions(allow_duplicates=True))
    assert kept["events"] == 6


def test_an_item_again_at_another_time_is_no_duplicate(tmp_path: Path) -> None:
    events = [(1, 5, 10), (1, 5, 11), (1, 5, 12)]
    assert write_split(samples.raw(events), "x", tmp_path / "s", SplitOptions())["events"] == 3


def test_short_users_are_refused_or_left_out(tmp_path: Path) -> None:
    events = [*samples.EVENTS, (9, 10, 1), (9, 20, 2), (4, 30, 1)]
    with pytest.raises(HstuError, match=r"2 of 4 users .* first: 4, 9") as error:
        write_split(samples.raw(events), "x", tmp_path / "s", SplitOptions())
    assert "--drop-short-users" in str(error.value.hint)
    assert not (tmp_path / "s").exists()
    options = SplitOptions(drop_short_users=True)
    manifest = write_split(samples.raw(events), "x", tmp_path / "s", options)
    assert (manifest["users"], manifest["events"], manifest["dropped_users"]) == (2, 6, 2)
    assert {user for user, _, _ in rows(read_events(tmp_path / "s", "test"))} == {2, 7}
    with pytest.raises(HstuError, match="no user has 3 events"):
        write_split(samples.raw(events[-3:]), "x", tmp_path / "t", options)
