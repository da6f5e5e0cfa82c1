"""Figures for papers: every row is on them, nothing is invented, and they are what they say."""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from statistics import stdev
from typing import TYPE_CHECKING

import pytest
import vl_convert
from click.testing import CliRunner
from entry_samples import candidate, failed, scores
from hypothesis import given
from hypothesis import strategies as st
from reported_run import HOSTILE, reported

from eop.cli import cli
from eop.leaderboard import Decision, Proposal, Scores, write_entry
from eop.leaderboard.ranking import ranked
from eop.report.figure_drawing import width_px, wrapped
from eop.report.figures import MOST_ROWS, leaderboard_figure, noise_figure

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

    from eop.leaderboard import Entry

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return reported(tmp_path_factory.mktemp("figures")).root


def call(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["--project", str(root), "plot", *arguments])


def drawn(root: Path, figure: str, path: Path) -> str:
    done = call(root, figure, str(path))
    assert done.exit_code == 0, done.exception
    return path.read_text()


def said(svg: str) -> list[str]:
    """What stands in a picture, text by text; the lines of one are joined."""
    texts = ET.fromstring(svg).iter(f"{SVG}text")
    return [" ".join(" ".join(text.itertext()).split()) for text in texts]


def reference(kind: str, ndcg: float, run: str = "demo") -> Entry:
    return candidate(
        f"{run}-{kind}",
        kind=kind,
        run=run,
        iteration=None,
        branch=None,
        parent=None,
        decision=None,
        proposal=Proposal(kind, f"The {kind}", ""),
        validation=scores(ndcg),
        test=scores(ndcg),
    )


def records(spec: dict) -> list[dict]:
    return [record for values in spec["datasets"].values() for record in values]


def rows(spec: dict) -> list[dict]:
    found = {str(one["top"]): one for one in records(spec) if "words" in one}
    return [found[top] for top in sorted(found, key=float)]


def notes(spec: dict) -> str:
    return " ".join(spec["title"]["text"])


def test_every_row_is_there_with_its_number_or_its_end(root: Path, tmp_path: Path) -> None:
    texts = said(drawn(root, "leaderboard", tmp_path / "a.svg"))
    for words in (
        "it01-p01: A wider net",
        "it01-p03: A shorter history",
        "it01-p02: A deeper net",
        "it01-p04: Genres",
        "The base",
        "Popularity",
        "failed",
        "rejected by preflight",
        "promoted",
        "0.0950",
        "base",
        "popularity",
    ):
        assert words in texts, words
    order = [texts.index(name) for name in ("it01-p01: A wider net", "The base", "Popularity")]
    assert order == sorted(order)
    assert texts.index("it01-p02: A deeper net") > order[-1], "what has no score comes last"
    assert "0.0000" not in texts


def test_what_was_not_measured_has_no_place_on_the_scale() -> None:
    lost = failed("demo-it01-p02")
    spec = leaderboard_figure(ranked([lost, candidate(), reference("base", 0.1)]))
    assert [("value" in row, row["at_right"]) for row in rows(spec)][-1] == (False, "failed")
    assert {record["value"] for record in records(spec) if "value" in record} == {0.11, 0.1}
    assert leaderboard_figure([lost]) is None
    assert noise_figure([lost, reference("base", 0.1)]) is None


def test_an_interval_that_was_not_recorded_is_not_drawn_and_that_is_said() -> None:
    bare = replace(scores(0.11), interval=None)
    spec = leaderboard_figure([candidate(test=bare), reference("base", 0.1)])
    assert [row["low"] for row in rows(spec)] == [None, pytest.approx(0.09)]
    assert "no interval was recorded" in notes(spec)
    whole = leaderboard_figure([candidate(), reference("base", 0.1)])
    assert "no interval was recorded" not in notes(whole)
    assert "Bars" not in notes(leaderboard_figure([candidate(test=bare)]))


def test_the_noise_figure_shows_gains_by_size_beside_band_and_seeds() -> None:
    made = Decision(False, 0.01, (-0.01, 0.03), "within", (1, 2), band=0.004)
    better = replace(made, delta=0.02, interval=(0.01, 0.03), promoted=True)
    of_old = replace(made, delta=-0.02, interval=(-0.03, -0.01), band=None)
    base = reference("base", 0.1)
    spec = noise_figure(
        [
            base,
            candidate("demo-it01-p01", decision=made),
            candidate("demo-it01-p02", decision=better),
            candidate("demo-it01-p03", decision=of_old),
            failed("demo-it01-p04"),
        ]
    )
    shown = [(row["at_right"], row.get("band_from"), row.get("band")) for row in rows(spec)]
    assert shown == [
        ("+0.0200", -0.004, 0.004),
        ("+0.0100", -0.004, 0.004),
        ("\N{MINUS SIGN}0.0200", None, None),
        ("failed", None, None),
    ]
    spread = stdev(seed["ndcg@10"] for seed in base.validation.seeds.values())
    lines = {record["at"] for record in records(spec) if "at" in record}
    assert lines == {0.0, spread, -spread}
    assert "no band was recorded" in notes(spec)
    shapes = ET.fromstring(vl_convert.vegalite_to_svg(spec)).iter(f"{SVG}path")
    assert sum(shape.get("fill") == "#d9d9d9" for shape in shapes) == 2
    assert f"{spread:.4f}" in notes(spec)


def test_popularity_far_below_leaves_the_scale_to_the_models() -> None:
    entries = [candidate(), reference("base", 0.11), reference("popularity", 0.01)]
    spec = leaderboard_figure(entries)
    assert "Far to the left of the scale: The popularity." in notes(spec)
    assert rows(spec)[-1]["at_right"] == "\N{LEFTWARDS ARROW} 0.0100"
    assert {record["name"] for record in records(spec) if "name" in record} == {"base"}
    near = leaderboard_figure([*entries[:2], reference("popularity", 0.1)])
    assert {r["name"] for r in records(near) if "name" in r} == {"base", "popularity"}


def test_bases_of_several_runs_are_rows_and_no_lines() -> None:
    spec = leaderboard_figure([candidate(), reference("base", 0.1), reference("base", 0.11, "b")])
    assert not [record for record in records(spec) if "name" in record]
    assert "demo-base: The base" in {row["words"] for row in rows(spec)}


def test_of_very_many_rows_the_first_are_drawn_and_the_rest_counted() -> None:
    many = [candidate(f"demo-it01-p{n:03}", test=scores(0.2 - n / 1e4)) for n in range(1000)]
    spec = leaderboard_figure(ranked([*many, reference("base", 0.05), failed("demo-it02-p01")]))
    assert len(rows(spec)) == MOST_ROWS
    assert rows(spec)[-1]["words"] == "The base"
    assert "Not drawn: 962 rows more, 1 of them not measured." in notes(spec)


@given(st.text(min_size=1, max_size=300), st.integers(min_value=20, max_value=300))
def test_words_of_any_length_are_whole_and_keep_to_their_width(title: str, px: int) -> None:
    lines = wrapped(title, px)
    assert all(width_px(line) <= px or len(line) == 1 for line in lines)
    letters = "".join(c for c in title if c.isprintable() and not c.isspace())
    assert "".join("".join(lines).split()) == letters


@pytest.mark.parametrize(
    "title", ["W" * 200, "FULL SOFTMAX " * 9, "\N{CJK UNIFIED IDEOGRAPH-4E00}" * 90]
)
def test_wide_letters_make_no_figure_wider(title: str) -> None:
    entry = candidate("demo-it01-p01", proposal=Proposal("p", title, ""))
    spec = leaderboard_figure([entry])
    assert "".join(rows(spec)[0]["words"].split()) == "it01-p01:" + "".join(title.split())
    picture = ET.fromstring(vl_convert.vegalite_to_svg(spec))
    assert int(picture.get("width")) == 322


def test_letters_are_large_and_dark_enough_for_print(root: Path, tmp_path: Path) -> None:
    for figure in ("leaderboard", "noise"):
        svg = drawn(root, figure, tmp_path / "a.svg")
        sizes = {float(size) for size in re.findall(r'font-size="([\d.]+)px"', svg)}
        assert sizes and min(sizes) * 72 / 96 >= 8, "pt"
        inks = {text.get("fill") for text in ET.fromstring(svg).iter(f"{SVG}text")}
        assert inks <= {"#000", "#000000"}, inks
        assert float(ET.fromstring(svg).get("width")) / 96 * 25.4 < 90, "one column, mm"


def test_equal_rows_give_equal_bytes_in_another_process_too(root: Path, tmp_path: Path) -> None:
    here = drawn(root, "leaderboard", tmp_path / "here.svg")
    there = tmp_path / "there.svg"
    subprocess.run(
        [sys.executable, "-m", "eop.cli", "--project", str(root), "plot", "leaderboard", there],
        env={**os.environ, "PYTHONHASHSEED": "7"},
        check=True,
        capture_output=True,
    )
    assert there.read_text() == here


def test_a_png_has_the_size_of_the_picture_and_the_dots_of_print(
    root: Path, tmp_path: Path
) -> None:
    picture = ET.fromstring(drawn(root, "noise", tmp_path / "a.svg"))
    assert call(root, "noise", str(tmp_path / "a.png")).exit_code == 0
    png = (tmp_path / "a.png").read_bytes()
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", png[16:24]) == tuple(
        4 * int(picture.get(side)) for side in ("width", "height")
    )
    at = png.index(b"pHYs")
    assert struct.unpack(">I", png[at + 4 : at + 8])[0] == pytest.approx(384 / 0.0254, abs=1)
    assert call(root, "noise", str(tmp_path / "a.PDF")).exit_code == 0
    assert (tmp_path / "a.PDF").read_bytes().startswith(b"%PDF-")


def refused(done: Result) -> str:
    assert done.exception is not None
    return str(done.exception)


def test_what_cannot_be_drawn_is_refused_and_nothing_is_written(root: Path, tmp_path: Path) -> None:
    for name in ("a.gif", "a", ".svg"):
        assert "EOP892" in refused(call(root, "noise", str(tmp_path / name)))
    assert call(root, "noise", str(tmp_path / "a.svg"), "--run", "r2").exit_code == 2
    nothing = call(root, "noise", str(tmp_path / "a.svg"), "--dataset", "other")
    assert "EOP893" in refused(nothing) and "there is no row" in refused(nothing)
    split = {**failed().evidence["split"], "digest": "cd" * 32}
    other = {**failed().evidence, "split": split}
    copy = tmp_path / "project"
    shutil.copytree(root, copy)
    write_entry(copy, failed("r2-it01-p02", run="r2", evidence=other), {})
    assert "EOP894" in refused(call(copy, "noise", str(tmp_path / "a.svg")))
    assert call(copy, "leaderboard", str(tmp_path / "one.svg"), "--run", "r1").exit_code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.svg", "project"]


def test_hostile_words_are_words() -> None:
    entry = candidate(proposal=Proposal("p", HOSTILE + "\x1b[31m", ""))
    svg = vl_convert.vegalite_to_svg(leaderboard_figure([entry]))
    tags = {element.tag.removeprefix(SVG) for element in ET.fromstring(svg).iter()}
    assert tags == {"svg", "g", "path", "rect", "line", "text", "tspan"}
    assert "<script>alert(1)" in "".join(said(svg))


def test_one_seed_and_one_row_have_a_scale() -> None:
    one = Scores.over_seeds({1: {"ndcg@10": 0.1, "hr@10": 0.2, "mrr": 0.05}})
    spec = leaderboard_figure([candidate(test=one)])
    low, high = next(
        layer["encoding"]["x"]["scale"]["domain"]
        for layer in spec["layer"]
        if "scale" in layer["encoding"].get("x", {})
    )
    assert low < 0.1 < high
