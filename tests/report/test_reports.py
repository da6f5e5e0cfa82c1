from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from entry_samples import project
from reported_run import HOSTILE, reported

from eop.leaderboard import entry_folder
from eop.report import (
    leaderboard_json,
    leaderboard_text,
    status_json,
    status_text,
    write_report,
)
from eop.report.charts import common_limit, read_curve
from eop.report.markup import Markup, el
from eop.runtime.advance import advance
from eop.runtime.trace import Trace

VOID = {"meta"}
LOADING = {"script", "link", "img", "iframe", "object", "embed", "image", "use", "base", "form"}


class Page(HTMLParser):
    """Reads a page strictly: every element closes, and what could load or run is remembered."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


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


def test_the_page_holds_the_whole_story(found, tmp_path):
    path = write_report(tmp_path, "r1")
    assert path == found.run_dir / "report.html"
    page = Page(path.read_text())
    assert page.open == []
    text = " ".join(page.text)
    for words in (
        "look again",  # why a gate was rejected
        "fine now",
        "the worker gave up",
        "A deeper net",
        "I5 failed: one scoring function",
        "rejected by preflight",
        "+0.0200 [+0.0100, +0.0300]",
        "seed 2",
        "An analysis.",
        "+a = 2",
        "Waiting for you: evolve",
        "touch gates/r1/it01-evolve.",
    ):
        assert words in text, words
    assert "gate confirm" in text
    assert re.search(r"by \w+, 20\d\d-", text), "who decided, and when"
    assert page.tags.count("polyline") == 5


def test_the_page_needs_nothing_else(found, tmp_path):
    source = write_report(tmp_path, "r1").read_text()
    page = Page(source)
    assert not LOADING & set(page.tags)
    assert not any(name in ("src", "srcset", "style") for name, _ in page.attributes)
    assert all(
        value.startswith("#") for name, value in page.attributes if name in ("href", "xlink:href")
    )
    style = source.partition("<style>")[2].partition("</style>")[0]
    assert "url(" not in style
    assert "@import" not in style
    assert "prefers-color-scheme: dark" in style


def test_hostile_words_stay_words(tmp_path):
    reported(tmp_path, HOSTILE)
    page = Page(write_report(tmp_path, "r1").read_text())
    assert page.open == []
    assert not LOADING & set(page.tags)
    assert not any(name.startswith("on") for name, _ in page.attributes)
    # Title, hypothesis, gate reason, node reason, note and run title each show it as it is.
    assert " ".join(page.text).count("<script>alert(1)</script>") >= 6


def test_the_same_run_gives_the_same_page(found, tmp_path):
    first = write_report(tmp_path, "r1").read_bytes()
    assert write_report(tmp_path, "r1").read_bytes() == first


def test_a_broken_curve_is_said_and_hides_no_row(found, tmp_path):
    curve = entry_folder(tmp_path, "r1-it01-p01") / "curve.tsv"
    curve.write_text("epoch\tloss\n1\tnan\n")
    text = write_report(tmp_path, "r1").read_text()
    assert "epoch 1 has the loss nan" in text
    assert "A wider net" in text


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


def test_hostile_titles_do_not_style_the_terminal(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "220")
    found = reported(tmp_path, HOSTILE + "\x1b[31mred")
    text = leaderboard_text(tmp_path) + status_text(found, position(found))
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
    status = status_json(found, position(found))
    json.dumps(status, allow_nan=False)
    assert [gate["key"] for gate in status["waiting"]] == ["it01_evolve_r2"]
    assert status["ended"] is None


def test_status_shows_steps_branches_spend_and_the_exact_command(found, tmp_path, narrow):
    here = position(found)
    text = status_text(found, here)
    lines = text.splitlines()
    steps = {tuple(line.split()[:3]) for line in lines}
    assert ("train", "p01", "completed") in steps
    assert ("implement", "p02", "failed") in steps
    assert ("gate", "confirm", "rejected") in steps
    assert ("gate", "confirm", "approved") in steps
    assert ("gate", "evolve", "requested") in steps
    assert any("agent actions:" in line and "of 500" in line for line in lines)
    gate = here.waiting[0]
    touch = f"touch {gate.approve.relative_to(tmp_path)}"
    assert any(line.endswith(touch) for line in lines), "whole, on one line"
    assert all(len(line) <= 80 for line in lines if "gates/" not in line)
    gate.approve.touch()
    after = status_text(found, position(found))
    assert "Waiting for you" not in after
    assert "Iteration 2" in after


def test_a_sentinel_that_decides_nothing_is_shown(found, tmp_path, narrow):
    gate = position(found).waiting[0]
    stray = gate.approve.with_name(gate.approve.name.replace(gate.digest, "0" * 16))
    stray.touch()
    text = status_text(found, position(found))
    assert "Waiting for you: evolve" in text
    assert f"{stray.name}: decides nothing" in text


def test_markup_escapes_all_that_is_not_markup():
    assert el("p", "<b>", Markup("<i></i>"), None, title='"x"', data_x=None) == (
        '<p title="&quot;x&quot;">&lt;b&gt;<i></i></p>'
    )


@pytest.mark.parametrize("text", ["", "epoch\tloss\n", "a\tb\n1\t2\n", "epoch\tloss\n1\tx\n"])
def test_a_curve_without_points_is_an_error(text):
    with pytest.raises(ValueError):
        read_curve(text)


def test_the_scale_of_intervals_is_never_empty():
    assert common_limit([]) == 1.0
    assert common_limit([(0.0, 0.0)]) == 1.0
    assert common_limit([(-0.2, 0.1)]) == pytest.approx(0.21)
