"""The files that a node was asked to leave: taken only when they are what was asked for."""

from __future__ import annotations

import json
import stat
from typing import TYPE_CHECKING, Any, NoReturn

from eop.core.schema import problems

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from eop.agents.contract import Expected

MAX_BYTES = 16 << 20


def collect(folder: Path, expected: Iterable[Expected]) -> tuple[dict[str, Path], list[str]]:
    """Files that conform, by output name, and one line for each that does not."""
    good: dict[str, Path] = {}
    wrong: list[str] = []
    for output in expected:
        path = folder / output.file
        faults = _file_faults(path) or _content_faults(path, output.schema)
        if faults:
            wrong += [f"{output.file}: {fault}" for fault in faults]
        else:
            good[output.name] = path
    return good, wrong


def _file_faults(path: Path) -> list[str]:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return ["was not left"]
    if not stat.S_ISREG(status.st_mode) or path.resolve() != path.parent.resolve() / path.name:
        return ["is not a regular file"]
    if status.st_nlink > 1:
        return ["is a hard link"]
    if status.st_size > MAX_BYTES:
        return [f"{status.st_size} bytes, over the cap of {MAX_BYTES}"]
    return [] if status.st_size else ["is empty"]


def _content_faults(path: Path, schema: dict[str, Any] | None) -> list[str]:
    try:
        text = path.read_bytes().decode()
        if schema is None:
            return []
        return problems(json.loads(text, parse_constant=_no_constant), schema)
    except UnicodeDecodeError:
        return ["is not UTF-8"]
    except (ValueError, RecursionError) as error:
        return [f"is not valid JSON: {error}"]


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")
