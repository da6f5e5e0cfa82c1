"""The Markdown side of a protocol: front matter, headings, eop blocks and the prose below them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt

from eop.core.errors import did_you_mean
from eop.protocol.diagnostics import Span

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markdown_it.token import Token

    from eop.protocol.diagnostics import Report
    from eop.protocol.source import Source

_FENCE = re.compile(r"\s*(`{3,}|~{3,})\s*\S")
_BEGINS = re.compile(r"\s*(?:`{3,}|~{3,})\s*eop\b")
_NAMED = re.compile(r"[\s{]*(?:phase|gate|loop):\s*([A-Za-z0-9_]+)")


@dataclass(frozen=True)
class Chunk:
    """YAML lines of the file; ``first_line`` counts from 1."""

    first_line: int
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Block:
    """An eop fence: its line, its YAML, the heading it is the first block of, the prose below.

    ``names`` are the steps that the text seems to declare, should it prove unreadable; ``chunk``
    is ``None`` when the fence itself is faulty.
    """

    line: int
    chunk: Chunk | None
    heading: str | None
    prose: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class Document:
    """A protocol's parts in the order of the file."""

    title: str | None
    front: Chunk | None
    blocks: tuple[Block, ...]


def split_document(source: Source, report: Report) -> Document:
    """Front matter, title and blocks of ``source``; what is malformed is reported."""
    front = _front_matter(source.lines, report)
    body = list(source.lines)
    if front is not None:
        end = front.first_line + len(front.lines)
        body[:end] = [""] * end
    tokens = MarkdownIt("commonmark").parse("\n".join(body))
    title = next(
        (tokens[i + 1].content for i, token in enumerate(tokens) if _is_heading(token, "h1")), None
    )
    return Document(title, front, tuple(_blocks(tokens, body, report)))


def _front_matter(lines: Sequence[str], report: Report) -> Chunk | None:
    if lines[0].rstrip() != "---":
        hint = "the first line must be '---', then 'eop: 1', 'name: ...' and so on, then '---'"
        report.error("EOP105", "the front matter is missing", Span(1, 1, len(lines[0])), hint)
        return None
    for number, line in enumerate(lines[1:], start=1):
        if line.rstrip() == "---":
            return Chunk(2, tuple(lines[1:number]))
    report.error(
        "EOP105", "the front matter is not closed", Span(1, 1, 3), "end it with a line '---'"
    )
    return None


def _is_heading(token: Token, tag: str | None = None) -> bool:
    return token.type == "heading_open" and token.level == 0 and tag in (None, token.tag)


def _is_block(token: Token) -> bool:
    return token.type == "fence" and token.info.split()[:1] == ["eop"]


def _blocks(tokens: list[Token], lines: Sequence[str], report: Report) -> list[Block]:
    marks = [
        token for token in tokens if _is_heading(token) or (_is_block(token) and token.level == 0)
    ]
    starts = [_lines_of(mark)[0] for mark in marks] + [len(lines)]
    headings = {
        _lines_of(token)[0]: tokens[i + 1].content
        for i, token in enumerate(tokens)
        if _is_heading(token)
    }
    blocks = [
        block
        for token in tokens
        for block in (
            _misplaced(token, lines, report)
            if token.type == "fence"
            else _swallowed(token, lines, report)
        )
    ]
    heading: str | None = None
    for mark, until in zip(marks, starts[1:], strict=True):
        if _is_heading(mark):
            heading = headings[_lines_of(mark)[0]]
            continue
        blocks.append(_block(mark, lines, until, heading, report))
        heading = None
    return blocks


def _block(
    token: Token, lines: Sequence[str], until: int, heading: str | None, report: Report
) -> Block:
    start, end = _lines_of(token)
    inner = lines[start + 1 : end]
    names = _names(inner)
    fault = _unclosed(token, inner)
    if fault is not None:
        span = Span(start + 1, 1, len(lines[start]))
        report.error("EOP106", fault, span, f"close it with a line '{token.markup}'")
        return Block(start + 1, None, heading, "", names)
    prose = "\n".join(lines[end:until]).strip("\n").rstrip()
    return Block(start + 1, Chunk(start + 2, tuple(inner[:-1])), heading, prose, names)


def _unclosed(token: Token, inner: Sequence[str]) -> str | None:
    """Why the fence is not closed where it should be, or ``None``."""
    for line in inner:
        if _FENCE.match(line):
            return "the fence is not closed before the next one opens"
    last = inner[-1].strip() if inner else ""
    closed = last.startswith(token.markup) and not last.strip(token.markup[0])
    return None if closed else "the fence is not closed"


def _misplaced(token: Token, lines: Sequence[str], report: Report) -> Iterator[Block]:
    """Report a fence that is meant as a block but is none; the block that it would have been."""
    start = _lines_of(token)[0]
    span = Span(start + 1, 1, len(lines[start].rstrip()))
    words = token.info.split()
    content = token.content.split("\n")
    if words[:1] == ["eop"]:
        if words[1:]:
            message = f"unknown word '{words[1]}' after 'eop'"
            report.error("EOP115", message, span, "a block begins with a line '```eop'")
        if not token.level:
            return
        message = "an eop block inside a list or a quotation"
        report.error("EOP114", message, span, "move it to the left margin")
    elif _almost(token.info):
        report.error("EOP115", f"unknown fence '{token.info.strip()}'", span, "write '```eop'")
    elif words in ([], ["yaml"], ["yml"]) and _NAMED.match(content[0]):
        hint = "write '```eop'; put an example into a fence '````markdown'"
        report.error("EOP115", "the fence holds a block and does not say so", span, hint)
    else:
        return
    yield Block(start + 1, None, None, "", _names(content))


def _almost(info: str) -> bool:
    words = info.split()
    return "eop" in re.split(r"[^a-z0-9]+", info.lower()) or (
        bool(words) and did_you_mean(words[0], ["eop"]) is not None
    )


def _swallowed(token: Token, lines: Sequence[str], report: Report) -> Iterator[Block]:
    """Report the eop fences in what Markdown takes whole: HTML, comments, indented lines."""
    if token.type not in ("html_block", "code_block"):
        return
    start, end = _lines_of(token)
    for at in range(start, end):
        if not _BEGINS.match(lines[at]):
            continue
        inside = token.type == "html_block"
        where = "inside HTML, or in a comment" if inside else "indented as an example is"
        span = Span(at + 1, 1, len(lines[at].rstrip()))
        hint = "move it to the left margin, out of HTML; delete what is not to run"
        report.error("EOP114", f"an eop block {where}", span, hint)
        yield Block(at + 1, None, None, "", _names(lines[at + 1 : end]))


def _names(lines: Sequence[str]) -> tuple[str, ...]:
    return tuple(match[1] for line in lines if (match := _NAMED.match(line)))


def _lines_of(token: Token) -> tuple[int, int]:
    """First line and the line after the last, from 0. Block tokens of the parser carry both."""
    if token.map is None:
        raise ValueError(f"a {token.type} token without lines")
    return token.map[0], token.map[1]
