"""One error type for everything a person can mend: what is wrong, where, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class ExitCode(IntEnum):
    """Exit status of every command, by kind of trouble."""

    OK = 0
    FAILURE = 1
    USAGE = 2
    GATE_CLOSED = 3
    PROTOCOL = 4
    CONFIG = 5
    DATA = 6
    STATE = 7
    LOCKED = 8
    ENVIRONMENT = 9


@dataclass(frozen=True)
class Where:
    """A place in a file; ``line`` and ``column`` count from 1, ``None`` when unknown."""

    path: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        return ":".join(str(part) for part in (self.path, self.line, self.column) if part)


class EopError(Exception):
    """An error with a stable code, a place and a hint.

    ``code`` is stable (``EOP302``) and documented; ``exit_code`` is the process status that the
    command line returns for it.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        where: Where | None = None,
        hint: str | None = None,
        exit_code: ExitCode = ExitCode.FAILURE,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.where = where
        self.hint = hint
        self.exit_code = exit_code

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        hint = f"\n  hint: {self.hint}" if self.hint else ""
        return f"{place}error[{self.code}] {self.message}{hint}"


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """A hint that names the nearest known word, or ``None`` when nothing is near."""
    near = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"did you mean '{near[0]}'?" if near else None
