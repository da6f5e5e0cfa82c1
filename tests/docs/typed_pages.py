"""Type what a page has its reader type, in one shell, and see what comes of it."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from doc_pages import ROOT, blocks, commands, compared, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from doc_pages import Block

_PROGRAMS = {
    "eop": "eop.cli",
    "hstu": "hstu",
    "snakemake": "snakemake",
    "pytest": "pytest",
    "dvc": "dvc",
}
_MARK = "@@@ {} @@@"


@dataclass(frozen=True)
class Typed:
    """What came of typing: the shell's exit status, all that it said, and each block's wrongs."""

    status: int
    said: str
    wrong: tuple[str, ...]

    def check(self) -> None:
        """Fail, with what was said, unless each command did what the page says."""
        assert self.status == 0, self.said[-6000:]
        assert not self.wrong, "\n\n".join(self.wrong)


def programs(folder: Path) -> Path:
    """A folder with the commands of this very interpreter and working tree, and its ``python``."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, module in _PROGRAMS.items():
        _script(folder / name, f"-m {module}")
    _script(folder / "python", "")
    return folder


def type_page(
    page: str, folder: Path, instead: Mapping[str, str] | None = None, **variables: str
) -> Typed:
    """Type the ``sh`` and ``console`` blocks of a page, in order, in ``folder``.

    ``instead`` are words of the page that are other ones here; ``variables`` go into the
    environment.
    """
    found = blocks(page)
    for old, new in (instead or {}).items():
        assert any(old in block.text for block in found), f"{page}: '{old}' is not there"
        found = [replace(block, text=block.text.replace(old, new)) for block in found]
    return type_blocks(found, folder, variables)


def type_blocks(
    found: Iterable[Block], folder: Path, variables: Mapping[str, str] | None = None
) -> Typed:
    """Type blocks in one shell.

    A command of a ``console`` block may fail, and prints what stands below it; a ``text`` block
    is part of what was printed before it; an ``sh`` block must do without an error.
    """
    parts, checks = _script_of(found)
    # What runs in the background would keep the output open.
    parts.insert(0, "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT")
    bin_folder = programs(folder / ".bin")
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "\n".join(parts)],
        cwd=folder,
        env={
            **os.environ,
            "COLUMNS": "100",
            "PYTHONPATH": str(ROOT),
            **(variables or {}),
            "PATH": f"{bin_folder}:{os.environ['PATH']}",
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
        check=False,
    )
    wrong = [message for check in checks if (message := check.wrong(done.stdout))]
    return Typed(done.returncode, done.stdout, tuple(wrong) if done.returncode == 0 else ())


@dataclass(frozen=True)
class _Check:
    """What a block says is printed: by command ``mark``, or by any one before it."""

    block: Block
    mark: int
    output: str
    anywhere: bool

    def wrong(self, said: str) -> str | None:
        before, mark, after = said.partition(_MARK.format(self.mark) + "\n")
        if not mark:
            return f"{self.block.where}: it was not come to"
        printed = before if self.anywhere else after.partition(_MARK.format(self.mark + 1))[0]
        expected = compared(self.output)
        if self.anywhere:
            expected = ["...", *expected, "..."]
            printed = _without_marks(printed)
        if shown(expected, compared(printed)):
            return None
        return f"{self.block.where}: prints\n{printed.strip()[-3000:]}\nand not\n{self.output}"


def _script_of(found: Iterable[Block]) -> tuple[list[str], list[_Check]]:
    parts: list[str] = []
    checks: list[_Check] = []
    number = 0

    def mark() -> int:
        nonlocal number
        number += 1
        parts.append(f"echo '{_MARK.format(number)}'")
        return number

    for block in found:
        if block.info == "sh":
            mark()
            parts.append(block.text)
        elif block.info == "console":
            for command, output in commands(block):
                checks.append(_Check(block, mark(), output, anywhere=False))
                parts.append(f"{{ {command}\n}} || true")
        elif block.info == "text":
            checks.append(_Check(block, mark(), block.text, anywhere=True))
    mark()
    return parts, checks


def _without_marks(said: str) -> str:
    return "\n".join(line for line in said.splitlines() if not line.startswith("@@@ "))


def _script(path: Path, arguments: str) -> None:
    path.write_text(f'#!/bin/sh\nexec {sys.executable} {arguments} "$@"\n')
    path.chmod(0o755)
