"""The one error type of hstu: what is wrong, where, and what to do about it."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Process status of the hstu command line, by kind of trouble."""

    FAILURE = 1
    USAGE = 2
    CONFIG = 5
    DATA = 6
    ENVIRONMENT = 9


class HstuError(Exception):
    """An error that a person can mend.

    ``where`` is a place (``path``, ``path:line`` or a configuration key), ``hint`` says what to
    do, ``exit_code`` is the process status that the command line returns.
    """

    def __init__(
        self,
        message: str,
        where: str | None = None,
        hint: str | None = None,
        exit_code: int = ExitCode.DATA,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint
        self.exit_code = exit_code

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        hint = f"\n  hint: {self.hint}" if self.hint else ""
        return f"{place}error: {self.message}{hint}"
