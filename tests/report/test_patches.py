"""A patch is shown line by line as it is, whatever is in it."""

from __future__ import annotations

import html
import re

from hypothesis import given
from hypothesis import strategies as st

from eop.report.patches import read_patch

HEAD = "diff --git a/{0} b/{0}\n--- a/{0}\n+++ b/{0}\n"


def shown(text: str) -> str:
    """What a reader sees of a patch."""
    body = "".join(str(file.body) for file in read_patch(text).files)
    lines = re.findall(r'<span class="(?:add|del|same|at|head)">(.*?)</span>', body, re.DOTALL)
    assert "".join(f'<span class="">{line}</span>' for line in lines).count("<span") == len(lines)
    return "\n".join(html.unescape(re.sub(r"</?i[^>]*>", "", line)) for line in lines)


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=400))
def test_any_text_is_shown_as_it_is(text: str) -> None:
    assert shown(text) == "\n".join(text.splitlines())


@given(
    st.lists(
        st.tuples(
            st.sampled_from("+- "),
            st.text(alphabet="ab<>&\"'-+@ =(){}#:", max_size=40),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_lines_of_a_hunk_are_counted_whatever_they_begin_with(lines: list[tuple[str, str]]) -> None:
    old = sum(mark in "- " for mark, _ in lines)
    new = sum(mark in "+ " for mark, _ in lines)
    hunk = "".join(f"{mark}{code}\n" for mark, code in lines)
    text = f"{HEAD.format('x.py')}@@ -1,{old} +1,{new} @@\n{hunk}"
    patch = read_patch(text)
    assert (patch.added, patch.removed) == (
        sum(mark == "+" for mark, _ in lines),
        sum(mark == "-" for mark, _ in lines),
    )
    assert shown(text) == "\n".join(text.splitlines())


def test_files_are_named_and_their_code_is_coloured() -> None:
    text = (
        HEAD.format("a.py")
        + "@@ -1 +1 @@\n-def f(): return 1\n+def f(): return 'x'  # why\n"
        + HEAD.format("b.unknown")
        + "@@ -0,0 +1 @@\n+def plain\n"
    )
    first, second = read_patch(text).files
    assert (first.name, first.added, first.removed) == ("a.py", 1, 1)
    assert (second.name, second.added, second.removed) == ("b.unknown", 1, 0)
    for part in (
        '<i class="k">def</i>',
        '<i class="f">f</i>',
        '<i class="s">&#39;x&#39;</i>',
        '<i class="c"># why</i>',
    ):
        assert part in first.body
    assert "<i" not in second.body


def test_a_line_that_looks_like_a_header_stays_in_its_hunk() -> None:
    text = (
        HEAD.format("a.txt") + "@@ -1,2 +1,2 @@\n--- gone\n-diff --git a/z b/z\n+++ new\n+another\n"
    )
    (file,) = read_patch(text).files
    assert (file.added, file.removed) == (2, 2)


def test_what_is_too_long_is_cut_and_said() -> None:
    long = HEAD.format("a.py") + "@@ -0,0 +1,3000 @@\n" + "+x = 1\n" * 3000
    assert read_patch(long).left_out == 3000 + 4 - 2000
    wide = HEAD.format("a.py") + "@@ -0,0 +1 @@\n+" + "x" * 50_000 + "\n"
    body = read_patch(wide).files[0].body
    assert len(body) < 12_000
    assert "40001 more" in body


def test_a_string_of_many_lines_is_a_string_on_each_of_them_on_either_side() -> None:
    words = '-    """Old words\n+    """New words\n+    and more\n     return"""\n'
    text = f"{HEAD.format('a.py')}@@ -1,3 +1,4 @@\n def f():\n{words}"
    (file,) = read_patch(text).files
    old, new, more, last = (str(line) for line in file.lines[-4:])
    assert old == '<span class="del">-    <i class="s">&#34;&#34;&#34;Old words</i></span>'
    assert "New words</i>" in new
    assert more == '<span class="add">+<i class="s">    and more</i></span>'
    assert '<i class="s">' in last
    assert "def</i>" in str(file.lines[4])
