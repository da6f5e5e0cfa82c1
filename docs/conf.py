"""Sphinx: the pages of this folder, the reference from the code (make docs)."""

from __future__ import annotations

from importlib.metadata import version as installed

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

html_theme = "furo"
html_title = "RankEvolve"
