"""What another version of a product may tell besides changes nothing: new events, new fields."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from recordings import FIXTURES, Case, Judged, cases, judge

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CASES = cases(FIXTURES)
NEWS = (
    {"type": "brand_new", "subtype": "success", "usage": {"input_tokens": 10**6}, "id": "n-1"},
    {"type": "system", "subtype": "brand_new", "status": "error", "error": {"message": "401"}},
    {"type": "brand.new", "item": {"type": "file_change", "id": "n-2"}, "payload": {"type": "x"}},
)
MODELS = ("claude-sonnet-4-5", "claude-opus-4-1", "gpt-5.5", "mock-model", "mock")
# What the model itself wrote.
ANSWERS = ("structured_output", "input")


def told(judged: Judged) -> tuple[Any, ...]:
    return judged.status, judged.reason.http_status, judged.usage, judged.counters


def varied(case: Case, folder: Path, vary: Callable[[bytes], bytes]) -> Judged:
    copy = Case(folder / "case", case.meta)
    shutil.copytree(case.directory, copy.directory)
    for path in (copy.recording().stdout, *copy.recording().sessions):
        if path.suffix != ".json":  # one object on many lines
            path.write_bytes(vary(path.read_bytes()))
    return judge(case.meta, copy.recording())


def by_line(change: Callable[[Any], Any]) -> Callable[[bytes], bytes]:
    """Every line that is JSON is changed; as tight or as loose as it was written."""

    def vary(content: bytes) -> bytes:
        lines = content.splitlines(keepends=True)
        for place, line in enumerate(lines):
            try:
                value = json.loads(line)
            except ValueError:
                continue
            end = b"\n" if line.endswith(b"\n") else b""
            lines[place] = json.dumps(change(value)).encode() + end
        return b"".join(lines)

    return vary


def with_fields(value: Any) -> Any:
    if isinstance(value, dict):
        same = {k: v if k in ANSWERS else with_fields(v) for k, v in value.items()}
        # What maps names to things of one kind would have one more of that kind.
        names = all(isinstance(item, dict) for item in value.values())
        return same if names else {**same, "brand_new": {"type": "x", "count": 7}}
    return [with_fields(item) for item in value] if isinstance(value, list) else value


def backwards(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: backwards(value[key]) for key in reversed(value)}
    return [backwards(item) for item in value] if isinstance(value, list) else value


def events_between(content: bytes) -> bytes:
    """Before each line, for what follows a last report may be its end."""
    lines = content.splitlines(keepends=True)
    news = [json.dumps(one).encode() + b"\n" for one in NEWS]
    return b"".join(b"".join([news[n % len(news)], line]) for n, line in enumerate(lines))


def other_model(content: bytes) -> bytes:
    for name in MODELS:
        content = content.replace(f'"{name}"'.encode(), b'"a-model-of-tomorrow[1m]"')
    return content


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize(
    "vary",
    [
        events_between, other_model, by_line(with_fields), by_line(backwards),
        lambda content: content.replace(b"\n", b"\r\n"),
    ],
    ids=["events", "model", "fields", "order", "crlf"],
)  # fmt: skip
def test_what_is_new_changes_nothing(
    case: Case, vary: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    assert told(varied(case, tmp_path, vary)) == told(judge(case.meta, case.recording()))
