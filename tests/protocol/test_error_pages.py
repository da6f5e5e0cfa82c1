"""A page per code: its example is wrong in exactly that way, and mended as the page says."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner
from error_pages import FOLDER, REPOSITORY, Page, diagnostics_of

from eop.cli import cli
from eop.protocol.codes import CODES
from eop.protocol.diagnostics import render

# Faults that no document can hold: of the file itself, or of the release.
NO_EXAMPLE = {"EOP101", "EOP102", "EOP119"}


def test_every_code_has_a_page_and_every_page_a_code() -> None:
    assert set(CODES) <= {path.stem for path in FOLDER.glob("*.md")}


@pytest.mark.parametrize("code", CODES)
def test_the_example_is_wrong_in_this_way_only_and_mended_as_shown(code: str) -> None:
    page = Page.read(code)
    assert page.title == f"# {code}: {CODES[code]}"
    assert len(page.prose.split()) > 12, "a sentence or two for a person"
    if code in NO_EXAMPLE:
        assert page.wrong is None
        return
    assert page.wrong is not None
    assert page.mended is not None
    found = diagnostics_of(page.wrong)
    assert {one.code for one in found} == {code}
    assert render(found) == page.message, "run `make error-pages`"
    assert render(diagnostics_of(page.mended)) == ""


def test_the_reference_leads_to_the_pages() -> None:
    reference = (REPOSITORY / "docs" / "protocol.md").read_text()
    anchors = {
        re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-")
        for title in re.findall(r"^#+ (.*)$", reference, re.MULTILINE)
    }
    assert "(errors/)" in reference
    for path in FOLDER.glob("*.md"):
        for anchor in re.findall(r"\]\(\.\./protocol\.md#([^)]*)\)", path.read_text()):
            assert anchor in anchors, f"{path.name} leads to #{anchor}"
        assert max(map(len, path.read_text().splitlines())) <= 130, path


def explained(code: str) -> tuple[int, str]:
    done = CliRunner().invoke(cli, ["explain", code])
    return done.exit_code, done.output


def test_explain_prints_the_page() -> None:
    assert explained("EOP402") == (0, (FOLDER / "EOP402.md").read_text())
    assert explained("eop402")[0] == 0


def test_explain_knows_what_the_commands_raise() -> None:
    status, text = explained("EOP710")
    assert status == 0
    assert text.startswith("EOP710: the protocol has changed since the run began")


def test_explain_of_what_is_no_code() -> None:
    status, text = explained("EOP40")
    assert status == 2
    assert "no error has the code 'EOP40'; did you mean" in text
