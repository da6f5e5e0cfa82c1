from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pytest
from entry_samples import project
from reported_run import HOSTILE, reported

from eop.report import (
    leaderboard_json,
    leaderboard_text,
    status_json,
    status_text,
)
from eop.runtime.advance import advance
from eop.runtime.trace import Trace


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    return reported(tmp_path_factory.mktemp("original"))


@pytest.fixture
def found(original, tmp_path):
    """The run, in a folder of the test's own."""
    shutil.copytree(original.root, tmp_path, dirs_exist_ok=True)
    return replace(original, root=tmp_path)


@pytest.fixture
def narrow(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


def position(found):
    return advance(found.root, found.run, found.plan, Trace(found.trace_dir, found.plan))


def test_the_table_fits_80_columns_and_says_what_is_missing(found, tmp_path, narrow):
    text = leaderboard_text(tmp_path)
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    order = [text.index(entry) for entry in ("r1-it01-p01", "r1-base", "r1-it01-p03", "r1-pop")]
    assert order == sorted(order)
    assert text.index("r1-it01-p02") > order[-1]
    failed_row = next(line for line in lines if "A deeper net" in line)
    assert failed_row.count("\N{EN DASH}") == 4
    assert "failed" in failed_row
    assert "0.0000" not in text
    assert "promoted" in text
    assert "+0.0100..+0.0300" in text
    assert "0.0850..0.1050" in text
    assert "2 seeds, 1 read" in text


def test_published_numbers_stand_under_the_rows_of_their_data_set(found, tmp_path, narrow):
    anchors = "{}: [{{name: 'HSTU [bold]', ndcg@10: 0.172, source: s}}]\n"
    (tmp_path / "config" / "anchors.yaml").write_text(anchors.format("another"))
    assert "Published" not in leaderboard_text(tmp_path)
    (tmp_path / "config" / "anchors.yaml").write_text(anchors.format("toy"))
    assert "split: HSTU [bold] 0.1720." in " ".join(leaderboard_text(tmp_path).split())


def test_hostile_titles_do_not_style_the_terminal(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "220")
    found = reported(tmp_path, HOSTILE + "\x1b[31mred")
    text = leaderboard_text(tmp_path) + status_text(found, position(found), {})
    assert "\x1b" not in text
    assert "[bold]" in text


def test_an_empty_leaderboard_says_so(tmp_path, narrow):
    project(tmp_path)
    assert "empty" in leaderboard_text(tmp_path)
    assert leaderboard_json(tmp_path) == {"schema": "leaderboard/1", "rows": []}


def test_json_has_null_for_what_is_missing(found, tmp_path):
    data = leaderboard_json(tmp_path)
    json.dumps(data, allow_nan=False)
    row = next(row for row in data["rows"] if row["entry"] == "r1-it01-p02")
    assert row["test_ndcg@10"] is None
    assert row["actions"] is None
    assert row["promoted"] is False
    status = status_json(found, position(found), {})
    json.dumps(status, allow_nan=False)
    assert [gate["key"] for gate in status["waiting"]] == ["it01_evolve_r2"]
    assert status["ended"] is None


def test_status_shows_steps_branches_spend_and_the_exact_command(found, tmp_path, narrow):
    here = position(found)
    text = status_text(found, here, {})
    lines = text.splitlines()
    steps = {tuple(line.split()[:3]) for line in lines}
    assert ("train", "p01", "completed") in steps
    assert ("implement", "p02", "failed") in steps
    assert ("gate", "confirm", "rejected") in steps
    assert ("gate", "confirm", "approved") in steps
    assert ("gate", "evolve", "asks") in steps
    assert any("agent actions:" in line and "of 500" in line for line in lines)
    gate = here.waiting[0]
    touch = f"touch {gate.approve.relative_to(tmp_path)}"
    assert any(line.endswith(touch) for line in lines), "whole, on one line"
    assert all(len(line) <= 80 for line in lines if "gates/" not in line)
    gate.approve.touch()
    after = status_text(found, position(found), {})
    assert "Waiting for you" not in after
    assert "Iteration 2" in after


def test_a_sentinel_that_decides_nothing_is_shown(found, tmp_path, narrow):
    gate = position(found).waiting[0]
    stray = gate.approve.with_name(gate.approve.name.replace(gate.digest, "0" * 16))
    stray.touch()
    text = status_text(found, position(found), {})
    assert "Waiting for you: evolve" in text
    assert f"{stray.name}: decides nothing" in text
