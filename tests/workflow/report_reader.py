"""`snakemake --report` of a project, and what stands in it."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from browsing import FLAGS, browser_path
from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from conftest import Project
    from playwright.sync_api import Page


@dataclass(frozen=True)
class Reported:
    """The report's own data: headings to paths, and of each path what is shown."""

    path: Path
    printed: str
    categories: dict[str, dict[str, list[str]]]
    results: dict[str, dict[str, Any]]

    def labels(self, category: str, subcategory: str) -> list[str]:
        paths = self.categories[category][subcategory]
        return sorted(self.results[path]["labels"]["result"] for path in paths)


def reported(project: Project, *arguments: str) -> Reported:
    """Make the report; the run must be as it was before."""
    before = state_of(project.root)
    path = project.root.parent / "report.html"
    done = project.snakemake("--report", str(path), *arguments)
    assert done.returncode == 0, done.stderr
    assert state_of(project.root) == before, "a report changes nothing of a run"
    text = path.read_text()
    return Reported(
        path, done.stdout + done.stderr, _data(text, "categories"), _data(text, "results")
    )


def state_of(root: Path) -> dict[str, bytes]:
    """What a run is: its events, the answers of people, its rows and notes."""
    tops = ("runs/*/trace/*", "gates/**/*", "leaderboard/**/*", "knowledge/**/*")
    return {
        str(path.relative_to(root)): path.read_bytes()
        for top in tops
        for path in sorted(root.glob(top))
        if path.is_file()
    }


@dataclass(frozen=True)
class Look:
    """The report in a browser."""

    page: Page
    address: str

    def at(self, *path: str) -> None:
        """Go from its front through headings to a result, and open that."""
        self.page.goto(self.address)
        for name in path[:-1]:
            self.page.get_by_text(name, exact=True).first.click()
        row = self.page.locator("tr", has=self.page.get_by_text(path[-1], exact=True))
        row.locator("a, button").first.click()


@contextmanager
def looking_at(shown: Reported) -> Iterator[Look]:
    """The report in Chromium; nothing may fail there, and nothing may be fetched."""
    with sync_playwright() as player:
        browser = player.chromium.launch(executable_path=browser_path(), args=FLAGS)
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        faults: list[str] = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda m: faults.append(m.text) if m.type == "error" else None)
        schemes: set[str] = set()
        page.on("request", lambda request: schemes.add(request.url.partition(":")[0]))
        yield Look(page, shown.path.as_uri())
        browser.close()
    assert faults == []
    assert schemes <= {"file", "data"}


def _data(text: str, name: str) -> Any:
    (block,) = re.findall(rf'<script id="{name}">\s*var {name} = (.*);\n', text)
    return json.loads(block)
