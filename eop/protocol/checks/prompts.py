"""The prompts of an agent phase: there, and templates that can be filled in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eop.core.errors import EopError
from eop.protocol.patterns import PATTERNS
from eop.protocol.prompts import prompts_of

if TYPE_CHECKING:
    from pathlib import Path

    from eop.protocol.diagnostics import Report
    from eop.protocol.draft import Draft


def check_prompts(draft: Draft, report: Report, root: Path) -> None:
    """A prompt that is wrong is reported at the nodes that are told by it, with its own place."""
    for phase in draft.phases:
        if phase.value.pattern not in PATTERNS:
            continue
        try:
            prompts_of(phase.value, root)
        except EopError as error:
            message = f"{error.where}: {error.message}"
            report.error(error.code, message, phase.node.key("nodes"), error.hint)
