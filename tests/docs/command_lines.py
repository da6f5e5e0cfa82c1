"""Command lines as pages show them, held against the real parsers: is there such an option?"""

from __future__ import annotations

import re
import shlex
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from io import StringIO
from typing import TYPE_CHECKING, Any

import click
from doc_pages import ROOT, blocks
from doc_pages import commands as typed_in

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Sequence

    from doc_pages import Block

_HEREDOC = re.compile(r"<<'?(\w+)'?")
_BETWEEN = frozenset({";", "&&", "||", "|", "&", "do", "then", "until", "if", "(", ")", "{", "}"})
_INTO = frozenset({">", ">>", "2>", "<"})
_SHORT = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_FENCED = re.compile(r"^ *(`{3,})[^`]*?\n.*?^ *\1\s*$", re.MULTILINE | re.DOTALL)
# What stands for a value, or for more of them: `...`, `N`, `<id>`.
_PLACEHOLDER = re.compile(r"^(?:\.\.\.|…|[A-Z_]+\.{0,3}|.*[<$].*)$")


def in_block(block: Block) -> list[str]:
    """The logical lines of a ``sh`` or ``console`` block, without the text of here-documents."""
    if block.info == "console":
        return [command for command, _ in typed_in(block)]
    lines = []
    rest = iter(block.text.replace("\\\n", " ").splitlines())
    for line in rest:
        lines.append(line)
        if (here := _HEREDOC.search(line)) is not None:
            for text in rest:
                if text == here[1]:
                    break
    return lines


def in_prose(page: str) -> list[str]:
    """What stands between single backticks in a page, and begins with a command of ours."""
    prose = _FENCED.sub("", (ROOT / page).read_text())
    found = [" ".join(match[1].split()) for match in _SHORT.finditer(prose)]
    return [one for one in found if one.split()[0] in _PARSERS and len(one.split()) > 1]


def in_blocks(page: str) -> list[str]:
    """The commands of all blocks of a page that are for a shell."""
    shells = [block for block in blocks(page) if block.info in ("sh", "console")]
    return [line for block in shells for line in in_block(block)]


def problems(line: str, *, whole: bool) -> list[str]:
    """What is wrong with the commands in a line; ``whole`` ones have all that they need."""
    return [
        f"`{' '.join(words)}`: {problem}"
        for words in _commands(line)
        if (problem := _problem(words, whole=whole))
    ]


def options_of(name: str, words: Sequence[str]) -> set[str]:
    """The options of the command that ``words`` lead to."""
    command: click.Command | None = _click_command(name)
    for word in words:
        assert isinstance(command, click.Group), words
        command = command.get_command(click.Context(command), word)
    assert command is not None, words
    return {option for one in command.params for option in (*one.opts, *one.secondary_opts)}


def programs(line: str) -> list[str]:
    """The program of each command in a line."""
    return [words[0] for words in _commands(line)]


def _commands(line: str) -> Iterator[list[str]]:
    # What is put in by the shell is a command too.
    line = re.sub(r"\"?\$\(([^()]*)\)\"?", r"; \1 ;", line)
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|(){}")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in [*lexer, ";"]:
        if word in _BETWEEN:
            if words:
                yield words
            words = []
        elif words and words[-1] in _INTO:
            words.pop()
        elif words or not re.match(r"\w+=", word):
            words.append(word)


def _problem(words: Sequence[str], *, whole: bool) -> str | None:
    if words[0] == "python" and words[1:2] == ["-m"]:
        module = words[2]
        alone = {"eop.cli": "eop", "hstu": "hstu", "snakemake": "snakemake", "pytest": "pytest"}
        words = [alone.get(module, module), *words[3:]]
    if words[0] == "torchrun":
        start = words.index("hstu")
        return _argparse(_torchrun(), words[1 : start + 1]) or _click(
            "hstu", words[start + 1 :], whole
        )
    check = _PARSERS.get(words[0])
    return check(words[1:], whole) if check else None


def _click(name: str, given: Sequence[str], whole: bool) -> str | None:
    command: click.Command = _click_command(name)
    words = list(given)
    context = click.Context(command, info_name=name)
    while isinstance(command, click.Group):
        if any(word.endswith(",") for word in words):
            return _listed(command, words)
        named = [word for word in words if not word.startswith("-")]
        if not named:
            return "no command is named" if whole else None
        found = command.get_command(context, named[0].rstrip(","))
        if found is None:
            return f"there is no command '{named[0]}'"
        words.remove(named[0])
        command, context = found, click.Context(found, info_name=named[0], parent=context)
    # `--json` in brackets is one that may be left out.
    words = [word.strip("[]") for word in words]
    try:
        options, left, _ = command.make_parser(context).parse_args(args=list(words))
    except click.BadOptionUsage as error:
        # In prose an option may stand for itself, without its value.
        return error.format_message() if whole else None
    except click.UsageError as error:
        return error.format_message()
    if left and not {"...", "…"} & set(left):
        return f"takes no '{left[0]}'"
    complete = whole and not {"...", "--help"} & set(words)
    return _values(command, context, options, complete)


def _listed(group: click.Group, words: Sequence[str]) -> str | None:
    """Several commands in one mention, `show, approve`; after the last its arguments may stand."""
    last = next(number for number, word in enumerate(words) if not word.endswith(","))
    named = [word.rstrip(",") for word in words[: last + 1]]
    there = group.list_commands(click.Context(group))
    wrong = [word for word in named if word not in there]
    return f"there is no command '{wrong[0]}'" if wrong else None


def _values(
    command: click.Command, context: click.Context, options: dict[str, Any], whole: bool
) -> str | None:
    for parameter in command.params:
        given = options.get(parameter.name or "")
        if given in (None, (), []) or "Sentinel" in type(given).__name__:
            if whole and parameter.required:
                return f"lacks {parameter.human_readable_name}"
            continue
        for value in given if isinstance(given, list | tuple) else [given]:
            if not isinstance(value, str) or _PLACEHOLDER.match(value):
                continue
            if isinstance(parameter.type, click.Path | click.File):
                continue
            try:
                parameter.type.convert(value, parameter, context)
            except click.UsageError as error:
                return error.format_message()
    return None


@cache
def _click_command(name: str) -> click.Command:
    if name == "eop":
        from eop.cli import cli

        return cli
    if name == "benchmarks":
        from benchmarks.__main__ import main

        return main
    from hstu.cli import cli as recommender

    return recommender


def _argparse(parser: argparse.ArgumentParser, words: Sequence[str]) -> str | None:
    said = StringIO()
    try:
        with redirect_stderr(said), redirect_stdout(StringIO()):
            parser.parse_args(list(words))
    except SystemExit as end:
        return None if end.code == 0 else said.getvalue().strip().splitlines()[-1]
    return None


@cache
def _torchrun() -> argparse.ArgumentParser:
    from torch.distributed.run import get_args_parser

    return get_args_parser()


def _snakemake(words: Sequence[str], whole: bool) -> str | None:
    del whole
    from snakemake.cli import get_argument_parser

    # An executor's own options are added when its plugin is loaded.
    own = [word for word in words if not word.startswith("--slurm-")]
    return _argparse(get_argument_parser(), own)


def _dvc(words: Sequence[str], whole: bool) -> str | None:
    from dvc.cli import DvcParserError
    from dvc.cli.parser import get_main_parser

    # A mention may name a group of commands; asked for help, it needs no more.
    alone = not whole and not any(word.startswith("-") for word in words)
    try:
        return _argparse(get_main_parser(), [*words, "--help"] if alone else words)
    except DvcParserError as error:
        return str(error.__context__ or error)


def _make(words: Sequence[str], whole: bool) -> str | None:
    del whole
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = [word for word in words if "=" not in word]
    wrong = [word for word in named if word not in targets]
    if wrong:
        return f"there is no target '{wrong[0]}'"
    arguments = [word.partition("=")[2] for word in words if word.startswith("ARGS=")]
    if named == ["bench"] and arguments:
        return _click("benchmarks", arguments[0].split(), whole=False)
    return None


_PARSERS: dict[str, Callable[[Sequence[str], bool], str | None]] = {
    "eop": lambda words, whole: _click("eop", words, whole),
    "hstu": lambda words, whole: _click("hstu", words, whole),
    "benchmarks": lambda words, whole: _click("benchmarks", words, whole),
    "snakemake": _snakemake,
    "dvc": _dvc,
    "make": _make,
}
