"""What a command prints for programs: one JSON object, of an answer or of an error."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from eop.core.errors import EopError

_ERROR = "error/1"
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def print_json(value: Mapping[str, Any]) -> None:
    """Print an object as readable JSON; its ``schema`` says what it is, with a version."""
    click.echo(json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False))


def error_json(error: EopError) -> dict[str, Any]:
    """An error as data: what, where, what to do, and the status that the command ends with."""
    return {
        "schema": _ERROR,
        "code": error.code,
        "message": error.message,
        "where": asdict(error.where) if error.where else None,
        "hint": error.hint,
        "status": int(error.exit_code),
    }


def usage_json(error: click.ClickException) -> dict[str, Any]:
    """The same of a command that was used wrongly: it has no code of ours."""
    facts = {"code": None, "message": error.format_message(), "where": None, "hint": None}
    return {"schema": _ERROR, **facts, "status": error.exit_code}


def say_files(paths: Iterable[Path | str], *, as_json: bool) -> None:
    """Print which files were written, one a line or as JSON."""
    files = [str(path) for path in paths]
    if as_json:
        print_json({"schema": "files/1", "files": files})
        return
    for file in files:
        click.echo(file)
