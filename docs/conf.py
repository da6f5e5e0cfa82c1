"""Sphinx: the pages of this folder, the reference from the code (make docs)."""

from __future__ import annotations

from importlib.metadata import version as installed
from typing import Any

project = "RankEvolve"
author = "The RankEvolve authors"
version = release = installed("rankevolve")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_click"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
autodoc_typehints = "description"
autodoc_member_order = "bysource"
nitpicky = False
# `--option` in a sentence has two dashes.
smartquotes = False

html_theme = "furo"
html_title = "RankEvolve"
html_show_copyright = False


def _literal(app: Any, context: Any, lines: list[str]) -> None:
    """A command's help is plain text: in it a star is a star, and an example is typed as it is."""
    del app, context
    for number, line in enumerate(lines):
        head, example, typed = line.partition("Example: ")
        if example and not head.strip():
            lines[number] = f"{line[: len(line) - len(typed)]}``{typed}``"
        elif "``" in line:
            lines[number] = line.replace("*", r"\*")
        else:
            # hr@10 is a metric and no address to write to.
            lines[number] = line.replace("*", r"\*").replace("@", r"\@")


def setup(app: Any) -> None:
    """Take the help texts of the commands as they are."""
    for part in ("description", "options", "arguments", "epilog"):
        app.connect(f"sphinx-click-process-{part}", _literal)
