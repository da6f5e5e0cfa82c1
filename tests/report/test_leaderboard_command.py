"""`eop leaderboard` in all its forms, on a project with every kind of row."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from reported_run import reported
from rich.console import Console

from eop.cli import cli
from eop.leaderboard import read_entries
from eop.leaderboard.summary import Comparison, summaries
from eop.report.summary import print_summaries

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result


@pytest.fixture
def root(tmp_path: Path) -> Path:
    reported(tmp_path)
    return tmp_path


def call(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["--project", str(root), "leaderboard", *arguments])


def test_the_forms_hold_the_same_rows(root: Path) -> None:
    rows = json.loads(call(root, "--json").stdout)["rows"]
    table = list(csv.DictReader(io.StringIO(call(root, "--csv").stdout)))
    assert [row["entry"] for row in table] == [row["entry"] for row in rows]
    assert set(table[0]) == set(rows[0])
    for text, row in zip(table, rows, strict=True):
        assert text["stands_on"].split() == row["stands_on"]
        for name in ("test_ndcg@10", "delta", "wall_s", "seeds"):
            assert (float(text[name]) if text[name] else None) == row[name], "missing is empty"
    # The base is of no iteration, which makes of no other row's 1 a 1.0.
    assert {text["iteration"] for text in table} == {"", "1"}
    assert {repr(row["iteration"]) for row in rows} == {"None", "1"}
    shown = call(root).stdout
    assert all(row["entry"] in shown.replace("\n", "") for row in rows)


def test_negative_rows_are_asked_for_by_their_word(root: Path) -> None:
    rows = json.loads(call(root, "--json", "--outcome", "failed").stdout)["rows"]
    assert [row["entry"] for row in rows] == ["r1-it01-p02"]
    both = call(root, "--json", "--outcome", "failed", "--outcome", "rejected_by_preflight")
    assert {row["outcome"] for row in json.loads(both.stdout)["rows"]} == {
        "failed",
        "rejected_by_preflight",
    }
    done = call(root, "--outcome", "lost")
    assert (done.exit_code, "within_noise" in done.output) == (2, True)


def test_a_run_that_nobody_knows_is_refused_with_those_that_have_rows(root: Path) -> None:
    for form in ((), ("--json",), ("--csv",), ("--summary",)):
        done = call(root, "--run", "r2", *form)
        assert (done.exit_code, done.stdout) == (2, "")
        assert "no run 'r2' (runs with rows: r1)" in done.stderr
    assert len(json.loads(call(root, "--json", "--run", "r1").stdout)["rows"]) == 6
    (root / "runs/r2").mkdir()
    (root / "runs/r2/plan.json").touch()
    assert json.loads(call(root, "--json", "--run", "r2").stdout)["rows"] == []


def test_since_says_how_many_rows_have_no_time(root: Path) -> None:
    done = call(root, "--since", "2026-01-01", "--json")
    assert json.loads(done.stdout)["rows"] == []
    assert "recorded no time" in done.stderr
    assert call(root, "--since", "yesterday").exit_code == 2


def test_the_summary_of_a_run(root: Path) -> None:
    (run,) = json.loads(call(root, "--summary", "--json").stdout)["runs"]
    assert run["promoted"] == 1
    assert run["false_promotions"] is None, "these rows recorded no level"
    assert sum(run["standings"].values()) == run["candidates"]
    text = call(root, "--summary").stdout
    assert "1 promoted" in text
    assert call(root, "--summary", "--csv").exit_code == 2


LONG = "hstu-evolve-ml-100k-popularity-of-the-last-month"


@pytest.mark.parametrize("columns", ["40", "60", "80", "90", "100", "140", None])
def test_no_id_is_broken_and_no_outcome_cut(
    root: Path, monkeypatch: pytest.MonkeyPatch, columns: str | None
) -> None:
    moved = root / "leaderboard" / LONG
    (root / "leaderboard" / "r1-it01-p03").rename(moved)
    entry = moved / "entry.yaml"
    entry.write_text(entry.read_text().replace("r1-it01-p03", LONG))
    if columns:
        monkeypatch.setenv("COLUMNS", columns)
    else:
        monkeypatch.delenv("COLUMNS", raising=False)
    words = call(root).stdout.split()
    assert {row["entry"] for row in json.loads(call(root, "--json").stdout)["rows"]} <= set(words)
    assert words.count("completed") == 4
    assert {"worse", "promoted", "failed", "rejected", "preflight"} <= set(words)


@pytest.mark.parametrize("width", [40, 80, 140])
def test_no_id_of_a_summary_is_broken(root: Path, width: int) -> None:
    (summary,) = summaries(read_entries(root))
    compared = Comparison(LONG, 0.0123, 0.001, 0.002, 0.003, promoted=True)
    console = Console(width=width, file=io.StringIO())
    with console.capture() as shown:
        print_summaries(console, [replace(summary, comparisons=[compared])])
    words = shown.get().splitlines()[-1].split()
    assert words == [LONG, "+0.0123", "0.001", "0.002", "0.003", "promoted"]


def test_piped_it_is_as_wide_as_its_content(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    lines = call(root).stdout.splitlines()
    assert any("HR@10" in line and "valid." in line for line in lines)
    assert sum("often the test was read." in line for line in lines) == 1
    assert max(len(line) for line in lines if "\N{BOX DRAWINGS LIGHT HORIZONTAL}" in line) < 120
