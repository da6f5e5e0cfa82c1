"""Secrets are taken out of whatever an agent leaves, however it is written or hidden."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eop.agents.redact import MARK, Redactor

if TYPE_CHECKING:
    from pathlib import Path

TOKEN = 'run/tok"12345'
KEY = b"sk-ant-api03-aB3dE5fG7hJ9kL1mN3pQ"


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_a_secret_is_found_between_any_bytes(before: bytes, after: bytes) -> None:
    redactor = Redactor([TOKEN])
    for form in (TOKEN, json.dumps(TOKEN), quote(TOKEN, safe="")):
        content = before + form.encode() + after
        assert redactor.finds(content)
        assert not redactor.finds(redactor.text(content.decode(errors="surrogateescape")))


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (KEY, True),
        (b'{"key": "' + KEY + b'"}', True),
        (b"OPENAI_API_KEY=" + KEY + b"\n", True),
        (b"task-1234567890123456789012", False),
        (b"sk-learn-is-a-very-long-name-indeed", False),
        (b"sk-1234", False),
        (b"", False),
    ],
)
def test_keys_are_known_by_their_looks(content: bytes, found: bool) -> None:
    assert Redactor().finds(content) is found


def test_short_words_are_no_secrets() -> None:
    assert not Redactor(["k", ""]).finds("a key")


def test_a_file_keeps_all_else_and_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"\xff\n" * 3 + TOKEN.encode() + b" and " + KEY + b"\0rest")
    path.chmod(0o750)
    assert Redactor([TOKEN]).file(path)
    assert path.read_bytes() == b"\xff\n" * 3 + MARK + b" and " + MARK + b"\0rest"
    assert path.stat().st_mode & 0o777 == 0o750
    assert not Redactor([TOKEN]).file(path)
    assert [child.name for child in tmp_path.iterdir()] == ["log"]


def test_a_json_line_stays_one(tmp_path: Path) -> None:
    path = tmp_path / "stdout"
    path.write_text(json.dumps({"text": f"it is {TOKEN}."}) + "\n")
    Redactor([TOKEN]).file(path)
    assert json.loads(path.read_text()) == {"text": "it is [redacted]."}


def test_a_tree_has_no_secret_left_anywhere(tmp_path: Path) -> None:
    token = "tok-12345"
    outside = tmp_path / "outside"
    outside.write_text(token)
    root = tmp_path / "home"
    (root / f"d-{token}/shut").mkdir(parents=True)
    (root / f"d-{token}/shut/a").write_text(token)
    (root / f"d-{token}/shut/a").chmod(0)
    (root / f"d-{token}/shut").chmod(0)
    (root / token).write_text("x")
    (root / "[redacted]").write_text("y")
    (root / "link").symlink_to(token)
    (root / "away").symlink_to("../outside")
    os.mkfifo(root / "fifo")
    (root / "huge").touch()
    os.truncate(root / "huge", 300 << 20)
    (root / "plain").write_text("plain")
    Redactor([token]).tree(root)
    left = {path.relative_to(root).as_posix() for path in root.rglob("*")}
    assert left == {
        "d-[redacted]", "d-[redacted]/shut", "d-[redacted]/shut/a", "[redacted]", "[redacted]_",
        "away", "fifo", "plain",
    }  # fmt: skip
    assert (root / "d-[redacted]/shut/a").read_text() == "[redacted]"
    assert outside.read_text() == token
