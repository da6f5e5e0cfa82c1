"""`snakemake --report` of a finished demo: every iteration, its negative ends, in a browser too."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browsing import browser_path
from playwright.sync_api import expect
from report_reader import Reported, looking_at, reported

if TYPE_CHECKING:
    from conftest import Project

RUN = "demo-synthetic"
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("demo")]


@pytest.fixture(scope="module")
def shown(demo: tuple[Project, str]) -> Reported:
    return reported(demo[0])


def test_it_has_every_iteration_with_its_negative_ends(shown: Reported) -> None:
    assert shown.categories.keys() == {"All iterations", "Iteration 1", "Iteration 2"}
    assert shown.labels("All iterations", "Other") == [
        "gains beside the noise",
        "scores with their intervals",
        "the page of the run",
    ]
    for iteration in ("Iteration 1", "Iteration 2"):
        assert shown.labels(iteration, "Overview") == ["rows, steps and gates"]
        assert {"Gates", "Steps"} < shown.categories[iteration].keys()
    failed = "p02: A mixture of logits instead of the dot product"
    assert shown.labels("Iteration 2", failed)[0] == "08 implement r2: failed"
    assert "07 approve proposals: rejected" in shown.labels("Iteration 2", "Gates")
    noise = shown.results[f"runs/{RUN}/noise.svg"]
    assert noise["job_properties"]["rule"] == "report"
    assert "95 % interval" in noise["caption"]


def test_it_is_a_zip_too(demo: tuple[Project, str], tmp_path: Path) -> None:
    done = demo[0].snakemake("--report", str(tmp_path / "report.zip"))
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(tmp_path / "report.zip") as packed:
        names = {Path(name).name for name in packed.namelist()}
    assert {"report.html", "it01.html", "it02.html", "leaderboard.svg", "noise.svg"} <= names


@pytest.mark.skipif(browser_path() is None, reason="no Chromium: apt-get install chromium")
def test_it_opens_and_shows_its_pages_and_pictures(shown: Reported) -> None:
    with looking_at(shown) as look:
        look.at("All iterations", "the page of the run")
        expect(look.page.frame_locator("iframe").locator("#leaderboard")).to_be_visible()
        look.at("All iterations", "gains beside the noise")
        picture = look.page.locator('img[src*="noise.svg"]')
        expect(picture).to_be_visible()
        assert picture.evaluate("(one) => one.naturalWidth") == 322
        look.at("Iteration 2", "Overview", "rows, steps and gates")
        heading = look.page.frame_locator("iframe").locator("h1")
        expect(heading).to_have_text(f"{RUN}, iteration 2")
