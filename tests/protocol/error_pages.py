"""The pages of ``docs/errors``: their parts, and what the checks say of their examples."""

from __future__ import annotations

import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from eop.protocol.compiler import check
from eop.protocol.diagnostics import render
from eop.protocol.products import PRODUCTS

if TYPE_CHECKING:
    from eop.protocol.diagnostics import Diagnostic

REPOSITORY = Path(__file__).parents[2]
FOLDER = REPOSITORY / "docs" / "errors"
EXAMPLE = "example.eop.md"
# A product of the examples: one that cannot enforce every tool.
BOUNDED = {**PRODUCTS, "bounded": frozenset({"edit"})}
# A model of the examples whose price nobody has told.
UNPRICED = {"opencode": "house-model"}
_PART = re.compile(r"^(`{3,4})(markdown|text|diff)\n(.*?)^\1$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Page:
    """One page: title line, prose, and the example where a document can hold the fault."""

    title: str
    prose: str
    wrong: str | None
    message: str | None
    mended: str | None

    @classmethod
    def read(cls, code: str) -> Page:
        text = (FOLDER / f"{code}.md").read_text()
        title, _, rest = text.partition("\n")
        parts = [(match[2], match[3]) for match in _PART.finditer(rest)]
        prose = rest.split("\n````markdown")[0].strip()
        if not parts:
            return cls(title, prose, None, None, None)
        (_, wrong), (_, message), (kind, last) = parts
        mended = last if kind == "markdown" else patched(wrong, last)
        return cls(title, prose, wrong, message.rstrip("\n"), mended)


def patched(text: str, diff: str) -> str:
    """``text`` with a diff applied, whose hunks are parted by lines ``@@``."""
    for hunk in diff.split("@@\n"):
        lines = hunk.rstrip("\n").split("\n")
        old = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("+"))
        new = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("-"))
        if text.count(old) != 1:
            raise ValueError(f"{old!r} is {text.count(old)} times in the example")
        text = text.replace(old, new)
    return text


def diagnostics_of(text: str) -> list[Diagnostic]:
    """What the checks say of a document, in a project with the shipped schemas and targets."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name in ("schemas", "targets", "prompts"):
            shutil.copytree(REPOSITORY / "config" / name, root / "config" / name)
        (root / "config/prompts/wordy.md").write_text(
            "${task} ${access} ${given} ${asked} ${rol}\n"
        )
        path = root / EXAMPLE
        path.write_text(text)
        return check(path, root=root, products=BOUNDED, unpriced=UNPRICED)


def reprint(code: str) -> None:
    """Write the message of a page anew, as the checks print it today."""
    page = Page.read(code)
    if page.wrong is None or page.message is None:
        return
    path = FOLDER / f"{code}.md"
    printed = render(diagnostics_of(page.wrong))
    path.write_text(path.read_text().replace(page.message, printed))


if __name__ == "__main__":
    for page_path in sorted(FOLDER.glob("EOP*.md")):
        reprint(page_path.stem)
