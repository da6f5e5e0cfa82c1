"""Templates that escape all they are given and know no default for what is missing."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from eop.report.view import GateView
from eop.report.words import FILTERS


@cache
def environment() -> Environment:
    """The templates of ``eop/report/templates``."""
    made = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(FILTERS)
    made.tests["gate"] = lambda step: isinstance(step, GateView)
    return made
