"""The prompts of roles: ``config/prompts/<name>.md``, templates that use what is declared here."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from string import Template
from typing import TYPE_CHECKING, Any

from eop.core.errors import EopError, ExitCode, Where, did_you_mean
from eop.protocol.patterns import AGGREGATE, PATTERNS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from eop.protocol.model import Phase

FOLDER = "config/prompts"
# For a role of a chain that has no prompt of its own.
DEFAULT = "agent"
# What a template may name, and must: an agent that is not told its task, what it may change, what
# it is given or what is asked of it cannot do its work.
REQUIRED = ("task", "access", "given", "asked")
VARIABLES = (*REQUIRED, "role")


@dataclass(frozen=True)
class Prompt:
    """A template that was checked. ``path`` is relative to the project."""

    name: str
    path: str
    text: str

    @cached_property
    def digest(self) -> str:
        """Hex sha256 of the template."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def render(self, values: Mapping[str, str]) -> str:
        """The text with each of ``VARIABLES`` in its place; ``KeyError`` for one without value."""
        return Template(self.text).substitute(values)


def prompts_of(phase: Phase, root: Path) -> dict[str, Prompt]:
    """The prompts of an agent phase, by the name that its pattern calls them.

    A role of a chain is told by a prompt of its own name, or else by ``DEFAULT``. Raises
    ``EopError`` (EOP215) for one that is missing or wrong, or not the one that the plan has pinned.
    """
    pattern = PATTERNS[phase.pattern or ""]
    if pattern.prompts:
        names = [n for n in pattern.prompts if n != AGGREGATE or AGGREGATE in phase.nodes]
        found = {name: read_prompt(root, name) for name in names}
    else:
        found = {role: read_prompt(root, _own(root, role)) for role in phase.nodes}
    for name, prompt in found.items():
        if phase.prompts.get(name, prompt.digest) != prompt.digest:
            raise _wrong(
                "it has changed since the protocol was compiled",
                Where(prompt.path),
                "restore it; or `eop migrate`, if the run may go on with the new one",
            )
    return found


def _own(root: Path, role: str) -> str:
    return role if (root / FOLDER / f"{role}.md").is_file() else DEFAULT


def read_prompt(root: Path, name: str) -> Prompt:
    """The prompt ``name`` of the project at ``root``. Raises ``EopError`` (EOP215)."""
    path = f"{FOLDER}/{name}.md"
    try:
        text = (root / path).read_text(encoding="utf-8")
    except OSError as error:
        raise _wrong(f"it cannot be read: {error.strerror}", Where(path)) from error
    except UnicodeDecodeError as error:
        raise _wrong("it is not UTF-8 text", Where(path)) from error
    used = set()
    for match in Template.pattern.finditer(text):
        place = _place(path, text, match.start())
        variable = match["named"] or match["braced"]
        if match["invalid"] is not None:
            raise _wrong("a '$' that begins no variable", place, "write $$ for a '$'")
        if variable is not None and variable not in VARIABLES:
            hint = did_you_mean(variable, VARIABLES) or f"known: {', '.join(VARIABLES)}"
            raise _wrong(f"unknown variable '{variable}'", place, hint)
        used.add(variable)
    missing = [variable for variable in REQUIRED if variable not in used]
    if missing:
        message = f"it does not tell its agent ${{{missing[0]}}}"
        raise _wrong(message, Where(path, 1), f"a prompt uses {', '.join(REQUIRED)}")
    return Prompt(name, path, text)


def _wrong(message: str, where: Where, hint: str | None = None) -> EopError:
    return EopError("EOP215", message, where=where, hint=hint, exit_code=ExitCode.CONFIG)


def _place(path: str, text: str, offset: int) -> Where:
    before: list[Any] = text[:offset].split("\n")
    return Where(path, len(before), len(before[-1]) + 1)
