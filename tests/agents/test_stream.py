"""A product's files are read as they are, and never waited for, whatever it puts in their place."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from eop.agents import stream
from eop.agents.stream import json_file, json_lines, size_of, tail

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def put_a_link(path: Path) -> None:
    path.with_name("other").write_text('{"a": 1}\n')
    path.symlink_to("other")


NOTHING: list[Callable[[Path], object]] = [
    lambda path: None,
    os.mkfifo,
    put_a_link,
    lambda path: path.mkdir(),
    lambda path: path.symlink_to("/dev/zero"),
    lambda path: path.symlink_to("nowhere"),
]


@pytest.mark.parametrize("put", NOTHING)
def test_what_is_no_plain_file_holds_nothing(tmp_path: Path, put: Callable[[Path], object]) -> None:
    path = tmp_path / "session.jsonl"
    put(path)
    assert (list(json_lines(path)), json_file(path), tail(path)) == ([], {}, "")


def test_a_list_on_a_line_is_its_objects(tmp_path: Path) -> None:
    path = tmp_path / "stdout"
    path.write_text('[{"a": 1}, 2, {"b": 3}]\n[]\n"word"\n[{"a": 1}')
    assert list(json_lines(path)) == [{"a": 1}, {"b": 3}, None, None]
    path.write_text(f'{"[" * 100_000}\n{{"a": 1}}\n')
    assert list(json_lines(path)) == [None, {"a": 1}]


def test_a_file_over_the_cap_is_no_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "session.jsonl"
    path.write_text('{"a": 1}\n' * 10)
    assert len(list(json_lines(path))) == 10
    monkeypatch.setattr(stream, "_MOST_BYTES", 50)
    assert list(json_lines(path)) == []


def test_one_that_grows_as_it_is_read_has_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "_MOST_BYTES", 200)
    path = tmp_path / "session.jsonl"
    path.write_text('{"a": 1}\n')
    with path.open("a", buffering=1) as writer:
        for read, _ in enumerate(json_lines(path), 1):
            writer.write('{"a": 1}\n' * 2)
            assert read < 100


def test_the_size_of_what_is_gone(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("12345")
    assert (size_of(tmp_path / "a"), size_of(tmp_path / "b")) == (5, 0)
