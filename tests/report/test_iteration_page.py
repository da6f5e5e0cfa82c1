"""The page of one iteration, as `snakemake --report` shows it: whole in itself, and of it alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from axe_playwright_python.sync_playwright import Axe
from browsing import FLAGS, browser_path
from page_reader import LOADING, Page
from playwright.sync_api import sync_playwright
from reported_run import HOSTILE, reported

from eop.report import write_pages

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return reported(tmp_path_factory.mktemp("iterations"), HOSTILE).root


@pytest.fixture(scope="module")
def first(root: Path) -> str:
    written = write_pages(root, "r1", published=True)
    assert written == [("runs/r1/pages/it01.html", 1)]
    return (root / written[0][0]).read_text()


def test_it_holds_the_rows_steps_and_gates_of_its_iteration(first: str) -> None:
    page = Page(first)
    assert page.open == []
    text = " ".join(" ".join(page.text).split())
    for words in (
        "r1, iteration 1",
        "The base",
        "A deeper net",
        "the worker gave up",
        "[0.0850, 0.1050]",
        "rejected by preflight",
        "look again",
        "gate confirm",
        "A claim:",
    ):
        assert words in text, words
    places = [value for name, value in page.attributes if name == "id"]
    assert len(places) == len(set(places))
    assert {value[1:] for name, value in page.attributes if name == "href"} <= set(places)


def test_nothing_in_it_runs_or_loads(first: str) -> None:
    page = Page(first)
    assert not (LOADING | {"script", "form"}) & set(page.tags)
    policy = next(value for _, value in page.attributes if value and "default-src" in value)
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'")


def test_another_iteration_s_rows_stay_on_its_own_page(tmp_path: Path) -> None:
    later = reported(tmp_path).root
    path = later / "leaderboard/r1-it01-p03/entry.yaml"
    path.write_text(path.read_text().replace("iteration: 1\n", "iteration: 2\n"))
    write_pages(later, "r1", published=True)
    rows = Page((later / "runs/r1/pages/it01.html").read_text()).attributes
    named = {value for name, value in rows if name == "data-entry"}
    assert "r1-it01-p03" not in named
    assert {"r1-base", "r1-popularity", "r1-it01-p01"} <= named


def test_the_whole_page_is_written_where_no_rule_does(tmp_path: Path) -> None:
    reported(tmp_path)
    assert write_pages(tmp_path, "r1", published=False) == [
        ("runs/r1/pages/it01.html", 1),
        ("runs/r1/pages/run.html", None),
    ]
    assert not (tmp_path / "runs/r1/leaderboard.svg").exists()
    write_pages(tmp_path, "r1", published=True)
    for name in ("report.html", "leaderboard.svg", "noise.svg"):
        assert (tmp_path / "runs/r1" / name).is_file()


def test_a_run_without_rows_has_figures_that_say_so(tmp_path: Path) -> None:
    found = reported(tmp_path)
    (tmp_path / "leaderboard").rename(tmp_path / "away")
    write_pages(tmp_path, found.run, published=True)
    for name in ("leaderboard", "noise"):
        assert "there is no row" in (found.run_dir / f"{name}.svg").read_text()
    assert "No entry yet." in (found.run_dir / "pages/it01.html").read_text()


@pytest.mark.xdist_group("browser")
@pytest.mark.skipif(browser_path() is None, reason="no Chromium: apt-get install chromium")
@pytest.mark.parametrize("width", [390, 1010])
def test_it_reads_in_a_frame_and_on_a_phone(first: str, root: Path, width: int) -> None:
    with sync_playwright() as player:
        browser = player.chromium.launch(executable_path=browser_path(), args=FLAGS)
        page = browser.new_page(viewport={"width": width, "height": 800})
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.on("dialog", lambda dialog: (said.append("dialog"), dialog.dismiss()))
        page.goto((root / "runs/r1/pages/it01.html").as_uri())
        for panel in page.locator(".panel > table").all():
            box, frame = panel.bounding_box(), panel.locator("..").bounding_box()
            assert box["x"] + box["width"] <= frame["x"] + frame["width"]
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        assert said == []
        assert Axe().run(page).violations_count == 0
        browser.close()
