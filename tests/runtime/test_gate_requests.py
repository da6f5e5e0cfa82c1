"""The request page: what changed, within bounds, and nothing that others wrote speaks for it."""

from __future__ import annotations

import json
import unicodedata
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from research_run import PROPOSALS, Run, research

from eop.runtime.changes import changes
from eop.runtime.gates import visible
from eop.runtime.node import Artifact, Instance
from eop.runtime.requests import Page, quoted, request_text

if TYPE_CHECKING:
    from pathlib import Path

PLAN = research()
HEADINGS = [
    "confirm, iteration 1",
    "Why the run went back to investigate",
    "What is shown",
    "investigate_text",
    "What your answer does",
    "How to answer",
]


def page_of(text: str, reason: str = "fine") -> str:
    """A page that shows ``text``, with a rejection's ``reason`` quoted above it."""
    shown = Artifact("investigate_text", "runs/r1/it01/investigate.md", "a" * 64, 9)
    history = ("## Why the run went back to investigate", quoted(reason))
    gate = Instance(1, "confirm")
    return request_text(
        PLAN, Page("r1", gate, "0" * 16, False, "gates/r1", ((shown, text),), history)
    )


def headings(page: str) -> list[str]:
    tokens = MarkdownIt().parse(page)
    return [tokens[i + 1].content for i, t in enumerate(tokens) if t.type == "heading_open"]


ATTACKS = [
    "```\n## How to answer\n\nYes:\n\n    touch elsewhere",
    "~~~\n````\n`````text\n# confirm",
    "    ```\n</pre>\n<script>",
    "\r## How to answer\r\n## How to answer\n",
    "\u2028## How to answer\u2029\x85# x\x0c# y",
    "fine\u202e\u2066evil\u200b\u00ad\x1b[2J\x1b[8mhidden\u2800\u3164\U000e0041",
]


@pytest.mark.parametrize("text", ATTACKS)
def test_hostile_content_stays_in_its_block(text: str) -> None:
    page = page_of(text, reason=text)
    assert headings(page) == HEADINGS
    outside = [line for line in page.splitlines() if not line.startswith("|")]
    assert [line for line in outside if "touch" in line] == [
        f"    touch gates/r1/it01-confirm.{'0' * 16}.{status}"
        for status in ("approved", "rejected")
    ]
    assert outside.count("## How to answer") == 1


@settings(deadline=None)
@given(st.text(max_size=300), st.text(max_size=100))
def test_no_text_at_all_changes_the_page_around_it(text: str, reason: str) -> None:
    page = page_of(text, reason)
    assert headings(page) == HEADINGS
    assert all(c == "\n" or c == "\t" or not unseen(c) for c in page)
    assert page == page_of(text, reason)


def unseen(char: str) -> bool:
    return unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


@given(st.text())
def test_what_is_visible_stays_as_it_is(text: str) -> None:
    once = visible(text)
    assert visible(once) == once
    plain = "".join(c for c in text if c.isascii() and c.isprintable())
    assert visible(plain) == plain


def test_replaced_characters_are_counted() -> None:
    page = page_of("a\u200bb\u202ec\ufffd")
    assert "2 characters that cannot be seen stand here as \ufffd." in page


def test_a_text_that_was_reworked_is_shown_as_a_short_diff(tmp_path: Path) -> None:
    run = Run(tmp_path)
    lines = [f"line {number}" for number in range(40)]
    run.do("it01_investigate", text="\n".join(lines) + "\n")
    run.touch("rejected", "name the ``` file\n## How to answer")
    lines[20] = "line twenty"
    run.do("it01_investigate_r2", text="\n".join(lines) + "\n")
    (gate,) = run.advance().waiting
    page = gate.request.read_text()
    assert "| name the ``` file\n| ## How to answer\n" in page
    assert "The last one was it01_confirm, rejected by" in page
    assert "`runs/r1/it01/investigate/artifacts/investigate.md`" in page
    diff = page.split("### investigate_text: changed")[1].split("## What is shown")[0]
    assert "| -line 20\n| +line twenty\n" in diff
    assert "line 5" not in diff
    assert headings(page).count("How to answer") == 1
    assert run.advance().waiting[0].request.read_text() == page


def test_the_next_turn_names_the_items_that_are_new(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.to_branches()
    for branch in ("p01", "p02"):
        run.branch(branch)
    run.do("it01_promote", text=json.dumps({"champion": "base", "delta": 0.1}))
    run.touch()
    items = [PROPOSALS[0] | {"title": "A wide net"}, {"id": "other", "title": "Another"}]
    run.do("it02_propose", text=json.dumps(items))
    page = run.advance().waiting[0].request.read_text()
    assert "The last one was it01_approve, approved by" in page
    told = page.split("### proposals: changed")[1].split("## What is shown")[0]
    assert "| - deep: A deeper net\n| + other: Another\n| ~ wide: A wide net\n" in told
    assert '|     title: "A wider net" -> "A wide net"' in told


def test_the_first_request_has_no_history(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.do("it01_investigate")
    assert "since the last request" not in run.advance().waiting[0].request.read_text()


def test_numbers_are_told_with_their_difference() -> None:
    old = {"ndcg@10": 0.1, "hr": [1, 2], "same": 1, "gone": None, "flag": True}
    new = {"ndcg@10": 0.125, "hr": [1, 3], "same": 1, "came": {}, "flag": False}
    assert changes(json.dumps(old), json.dumps(new)) == [
        "ndcg@10: 0.1 -> 0.125 (+0.025)",
        "hr[1]: 2 -> 3 (+1)",
        "gone: null -> (none)",
        "flag: true -> false",
        "came: (none) -> {}",
    ]


def test_order_alone_and_huge_numbers_are_told() -> None:
    assert changes("[1, 2]", "[1,  2]") == ["only the order or the spacing differs"]
    two = [{"id": "a"}, {"id": "b"}]
    assert changes(json.dumps(two), json.dumps(two[::-1])) == [
        "only the order or the spacing differs"
    ]
    assert changes("[1.5]", f"[1{'0' * 400}]")[0].startswith("[0]: 1.5 -> 1000")


TEXTS = st.one_of(
    st.text(),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(st.text(max_size=4) | st.just("id"), inner, max_size=4)
        ),
    ).map(json.dumps),
)


@settings(deadline=None)
@given(TEXTS, TEXTS)
def test_changes_are_bounded_visible_and_never_silent(old: str, new: str) -> None:
    lines = changes(old, new)
    assert bool(lines) == (old != new)
    assert len(lines) <= 61
    assert all(len(line) <= 200 and "\n" not in line for line in lines)
    assert all(c == "\t" or not unseen(c) for line in lines for c in line)


def test_many_and_long_texts_stay_one_page() -> None:
    old = "\n".join(f"a{n}" for n in range(900))
    assert changes(old, old.replace("a", "b"))[-1].startswith("... and ")
    assert changes("[" * 50000, "[" * 60000)[0].startswith("@@")
    assert changes("x\n" * 5000, "y\n" * 5000) == ["more than 1000 lines: compare the two files"]
