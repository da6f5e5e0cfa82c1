"""What pages promise names a test that is there, and files that they name are there."""

from __future__ import annotations

import re

import pytest
from doc_pages import PAGES, ROOT

_ROW = re.compile(r"^\| (.+) \|$", re.MULTILINE)
_TOPS = "benchmarks|config|docs|eop|execml|hstu|profiles|rules|scripts|tests"
_PATH = re.compile(rf"(?<!`)`((?:{_TOPS})/[\w./*-]+)`")
# What the reader of a page makes.
_MADE = {"config/playbooks/minimal.yaml"}


@pytest.mark.parametrize("page", ["docs/guarantees.md", "docs/evaluation.md"])
def test_each_promise_is_broken_by_a_test(page: str) -> None:
    rows = _ROW.findall((ROOT / page).read_text())[2:]
    assert len(rows) > 9
    for row in rows:
        tests = re.findall(r"`(tests/[\w/]+/test_\w+\.py)`", row.split(" | ")[-1])
        assert tests, f"no test breaks it: {row}"
        assert [name for name in tests if not (ROOT / name).is_file()] == []


@pytest.mark.parametrize("page", PAGES)
def test_files_that_a_page_names_are_there(page: str) -> None:
    named = set(_PATH.findall((ROOT / page).read_text())) - _MADE
    assert [name for name in sorted(named) if not any(ROOT.glob(name.rstrip("/")))] == []


@pytest.mark.parametrize("page", [page for page in PAGES if "/" not in page])
def test_links_between_files_lead_somewhere(page: str) -> None:
    """Of the pages that Sphinx does not read; in the others it finds a wrong one."""
    linked = re.findall(r"\]\(([^)#:]+)(?:#[\w-]+)?\)", (ROOT / page).read_text())
    assert [name for name in linked if not (ROOT / name).exists()] == []
