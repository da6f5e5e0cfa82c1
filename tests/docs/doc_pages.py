"""The fenced blocks of the pages that people read, and what of an output is compared."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
# The pages of errors are made and checked by tests/protocol/test_error_pages.py.
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    if path.parent.name != "errors" and path.name != "CHANGELOG.md"
)
_FENCE = re.compile(r"^ *(`{3,}|~{3,}|:{3,})(.*)$")
# What is another one on another machine or day: digests, decimals (with the blanks round them and
# the rulers above, which a column gives way to), durations, times of day, host and folder names.
_OTHERWISE = (
    (re.compile(r"\b[0-9a-f]{8,64}\b"), "#"),
    (re.compile(r"[+-]?\b\d+\.\d+"), "0.0"),
    (re.compile(r"─{2,}"), "──"),
    (re.compile(r" {2,}"), "  "),
)


@dataclass(frozen=True)
class Block:
    """A fenced block: where its fence stands, the fence's info string, what is in it."""

    page: str
    line: int
    info: str
    text: str

    @property
    def first(self) -> str:
        """Its first line: by it, and the page, a table names the block."""
        return self.text.split("\n", 1)[0]

    @property
    def where(self) -> str:
        return f"{self.page}:{self.line} ```{self.info}"


def blocks(page: str) -> list[Block]:
    """The outermost blocks of a page, in order; what a fence has within it is its text."""
    found = []
    lines = iter(enumerate((ROOT / page).read_text().splitlines(), start=1))
    for number, line in lines:
        if (opened := _FENCE.match(line)) is None:
            continue
        inside = []
        closing = re.compile(rf"^ *{re.escape(opened[1])}\s*$")
        for _, content in lines:
            if closing.match(content):
                break
            inside.append(content)
        else:
            raise ValueError(f"{page}:{number}: the fence is not closed")
        found.append(Block(page, number, opened[2].strip(), "\n".join(inside)))
    return found


def compared(text: str) -> list[str]:
    """The lines of an output, without what is another one on another machine or day."""
    for pattern, word in _OTHERWISE:
        text = pattern.sub(word, text)
    return [line.rstrip() for line in text.strip().splitlines()]


def shown(expected: list[str], printed: list[str]) -> bool:
    """Whether ``expected`` is what was printed, line for line.

    A line ``...`` stands for any lines, ``...`` within a line for anything in it.
    """
    if not expected:
        return not printed
    if expected[0] == "...":
        return any(shown(expected[1:], printed[skip:]) for skip in range(len(printed) + 1))
    line = ".*".join(re.escape(part) for part in expected[0].split("..."))
    if not printed or re.fullmatch(line, printed[0]) is None:
        return False
    return shown(expected[1:], printed[1:])


def commands(block: Block) -> list[tuple[str, str]]:
    """Of a ``console`` block each command, without its ``$``, and what is said that it prints."""
    found: list[tuple[str, list[str]]] = []
    for line in block.text.split("\n"):
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif not found:
            raise ValueError(f"{block.where}: it does not begin with a command, '$ ...'")
        elif not found[-1][1] and found[-1][0].endswith("\\"):
            found[-1] = (f"{found[-1][0]}\n{line}", [])
        else:
            found[-1][1].append(line)
    return [(command, "\n".join(output)) for command, output in found]
