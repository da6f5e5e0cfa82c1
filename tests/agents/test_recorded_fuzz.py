"""Cut and corrupted recordings: never a crash, never ok without a final report, never below 0."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recordings import FIXTURES, Case, Judged, cases, judge

from eop.agents.contract import Recording, Status

CASES = cases(FIXTURES)
# By product: what only its own report of a success holds, in a line of its own.
REPORTS = {
    "claude-code": b'"subtype":"success"',
    "qwen-code": b'"subtype":"success"',
    "codex": b'"turn.completed"',
    "openhands": b'"status": "finished"',
    "openhands-cli": b'FinishObservation|Agent finished|"execution_status": "finished"',
    "opencode": b'"step_finish"',
}


def damaged(case: Case, files: dict[str, bytes]) -> Judged:
    """The case with other contents of some of its files, as if it had gone well otherwise."""
    with TemporaryDirectory() as folder:
        copy = Case(Path(folder) / "case", case.meta)
        shutil.copytree(case.directory, copy.directory)
        for name, content in files.items():
            (copy.directory / name).write_bytes(content)
        kind = {"rc": 0, "stop": None, "patch_empty": False, "writes_expected": True}
        meta = {**case.meta, "exit": kind}
        judged = judge(meta, replace(copy.recording(), rc=0))
        left = b"".join(path.read_bytes() for path in sorted(copy.directory.iterdir())
                        if path.name != "meta.json")  # fmt: skip
    check(case, judged, left)
    return judged


def check(case: Case, judged: Judged, left: bytes) -> None:
    for name, value in {**asdict(judged.usage), **asdict(judged.counters)}.items():
        assert not isinstance(value, int | float) or value >= 0, name
    if judged.status is Status.OK:
        reports = REPORTS[case.meta["product"]].split(b"|")
        assert any(report in left for report in reports), f"{case.name}: ok without a report"
    json.dumps([event.data for event in judged.events])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_cut_at_every_line(case: Case) -> None:
    lines = (case.directory / "stdout").read_bytes().splitlines(keepends=True)
    for count in range(len(lines)):
        damaged(case, {"stdout": b"".join(lines[:count])})


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_without_the_session_files(case: Case) -> None:
    recording = case.recording()
    judged = judge(case.meta, replace(recording, sessions=()))
    check(case, judged, recording.stdout.read_bytes())


@given(st.sampled_from(CASES), st.floats(0, 1), st.booleans())
@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
def test_cut_anywhere(case: Case, share: float, sessions_too: bool) -> None:
    names = [path.name for path in case.recording().sessions] if sessions_too else []
    cut = {}
    for name in ("stdout", *names):
        content = (case.directory / name).read_bytes()
        cut[name] = content[: int(len(content) * share)]
    damaged(case, cut)


@given(
    st.sampled_from(CASES),
    st.lists(st.tuples(st.floats(0, 1), st.binary(min_size=1, max_size=6)), max_size=8),
)
@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
def test_bytes_overwritten(case: Case, damage: list[tuple[float, bytes]]) -> None:
    files = {}
    for path in (case.recording().stdout, *case.recording().sessions):
        content = bytearray(path.read_bytes())
        for share, junk in damage:
            place = int(len(content) * share)
            content[place : place + len(junk)] = junk
        files[path.name] = bytes(content)
    damaged(case, files)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=6,
)


@given(st.sampled_from(CASES), st.data())
@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
def test_values_of_other_types(case: Case, data: st.DataObject) -> None:
    """Every line is JSON still, but a value in it is not what it was."""
    files = {}
    for path in (case.recording().stdout, *case.recording().sessions):
        lines = path.read_text(errors="replace").splitlines() or [""]
        place = data.draw(st.integers(0, len(lines) - 1))
        try:
            line = json.loads(lines[place])
        except ValueError:
            line = {}
        _replace_one(line, data)
        # As the products write it: what tells a report is looked for in the text.
        tight = (",", ":") if '":"' in lines[place] else None
        lines[place] = json.dumps(line, separators=tight)
        files[path.name] = "\n".join(lines).encode() + b"\n"
    damaged(case, files)


def _replace_one(value: object, data: st.DataObject) -> None:
    while isinstance(value, dict | list) and value:
        keys = sorted(value) if isinstance(value, dict) else range(len(value))
        key = data.draw(st.sampled_from(list(keys)))
        if not isinstance(value[key], dict | list) or data.draw(st.booleans()):
            value[key] = data.draw(JSON)  # type: ignore[index]
            return
        value = value[key]


def test_files_that_are_not_there_or_no_files(tmp_path: Path) -> None:
    (tmp_path / "real").write_text('{"type":"result","subtype":"success","is_error":false}\n')
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for stdout in (tmp_path / "gone", tmp_path, tmp_path / "link", Path("/dev/zero")):
        for case in {case.meta["product"]: case for case in CASES}.values():
            recording = Recording(stdout, stdout, (stdout,), rc=0)
            assert judge(case.meta, recording).status is not Status.OK
