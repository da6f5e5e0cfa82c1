"""The text of one generated rule. Values are emitted by ``repr``; nothing reaches a shell."""

from __future__ import annotations

from dataclasses import dataclass
from string import Template
from typing import TYPE_CHECKING

from eop.compile.results import CAPTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from eop.compile.results import Result

_RULE = Template(
    """\
# $comment
rule $name:
$place    input:
$inputs
    output:
$output
    params:
$params
    log:
        $log,
    benchmark:
        $benchmark
    threads: $threads
    resources:
        runtime=$minutes,
$asked    message:
        $message
    script:
        $script
"""
)

# Generated files lie in runs/<run>/rules/, and captions are looked for from there.
_CAPTIONS = f"../../../{CAPTIONS}"


@dataclass(frozen=True)
class Rule:
    """A literal rule; ``comment`` gives the protocol's line, ``minutes`` the time limit.

    A ``local`` one is never given to a cluster; those of one ``group`` that follow each other are
    given to it as one job.
    """

    name: str
    comment: str
    inputs: tuple[str, ...]
    output: str
    params: dict[str, str]
    log: str
    benchmark: str
    message: str
    script: str
    threads: int = 1
    minutes: int = 60
    gpus: int = 0
    ram_mb: int | None = None
    local: bool = False
    group: str | None = None
    result: Result | None = None

    def text(self) -> str:
        """Snakemake source of the rule; equal rules give equal bytes."""
        if not self.name.isidentifier():
            raise ValueError(f"not a rule name: {self.name!r}")
        return _RULE.substitute(
            comment="".join(c if c.isprintable() else " " for c in self.comment),
            name=self.name,
            inputs=_block(f"{path!r}," for path in self.inputs),
            output=_block(self._output()),
            params=_block(f"{key}={value!r}," for key, value in sorted(self.params.items())),
            log=repr(self.log),
            benchmark=repr(self.benchmark),
            threads=self.threads,
            minutes=self.minutes,
            place="".join(f"    {line}\n" for line in self._place()),
            asked="".join(f"        {line},\n" for line in self._asked()),
            message=repr(_braces(self.message)),
            script=repr(self.script),
        )

    def _output(self) -> Iterator[str]:
        """Its place in ``snakemake --report`` stands beside it."""
        if self.result is None:
            yield f"{self.output!r},"
            return
        yield "report("
        yield f"    {self.output!r},"
        for key, value in self.result.flag(_CAPTIONS).items():
            yield f"    {key}={value!r},"
        yield "),"

    def _place(self) -> Iterator[str]:
        if self.local:
            yield "localrule: True"
        elif self.group:
            yield f"group: {self.group!r}"

    def _asked(self) -> Iterator[str]:
        """Resources in the words of Snakemake and its cluster plugins."""
        if self.gpus:
            yield f"gpu={self.gpus}"
        if self.ram_mb is not None:
            yield f"mem_mb={self.ram_mb}"


def _block(lines: Iterable[str]) -> str:
    return "\n".join(f"        {line}" for line in lines)


def _braces(message: str) -> str:
    """Double the braces: Snakemake formats messages, and an agent's title is only text."""
    return message.replace("{", "{{").replace("}", "}}")
