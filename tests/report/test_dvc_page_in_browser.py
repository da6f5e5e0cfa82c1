"""The page of `dvc plots` in a headless Chromium that reaches no network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from browsing import FLAGS, browser_path
from click.testing import CliRunner
from entry_samples import FILES, candidate, project
from playwright.sync_api import sync_playwright

from eop.cli import cli
from eop.evidence import Dvc
from eop.leaderboard import write_entry

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.xdist_group("browser"),
    pytest.mark.skipif(browser_path() is None, reason="no Chromium: apt-get install chromium"),
]


def test_the_pictures_are_drawn_without_a_network(tmp_path: Path) -> None:
    root = project(tmp_path / "project")
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    Dvc(root).init()
    for number, ndcg in enumerate((0.10, 0.12, 0.15)):
        write_entry(root, candidate(f"d-it01-p0{number + 1}", ndcg), FILES)
    done = CliRunner().invoke(cli, ["--project", str(root), "store", "index"])
    assert done.exit_code == 0, done.output
    drawn = subprocess.run(
        [sys.executable, "-m", "dvc", "plots", "show", "-q"],
        cwd=root,
        env={**os.environ, "DVC_SITE_CACHE_DIR": str(tmp_path / "site")},
        check=False,
    )
    assert drawn.returncode == 0
    path = root / "dvc_plots" / "index.html"
    assert not re.findall(r"""(?:src|href)=["']?https?:""", path.read_text())
    said: list[str] = []
    with sync_playwright() as player:
        browser = player.chromium.launch(executable_path=browser_path(), args=FLAGS)
        context = browser.new_context(offline=True, viewport={"width": 1000, "height": 800})
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("requestfailed", lambda request: said.append(request.url))
        page.goto(path.as_uri())
        page.wait_for_function(
            "document.querySelectorAll('.vega-embed canvas, .vega-embed svg.marks').length === 2"
        )
        page.screenshot(path=tmp_path / "plots.png", full_page=True)
        browser.close()
    assert said == []
    # The colours of marks, of three entries at least, are in the picture.
    assert (tmp_path / "plots.png").stat().st_size > 20_000
