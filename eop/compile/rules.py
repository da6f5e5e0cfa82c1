"""The text of one generated rule. Values are emitted by ``repr``; nothing reaches a shell."""

from __future__ import annotations

from dataclasses import dataclass
from string import Template
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_RULE = Template(
    """\
# $comment
rule $name:
$local    input:
$inputs
    output:
        $output,
    params:
$params
    log:
        $log,
    benchmark:
        $benchmark
    threads: $threads
    resources:
        runtime=$minutes,
    message:
        $message
    script:
        $script
"""
)


@dataclass(frozen=True)
class Rule:
    """A literal rule; ``comment`` gives the protocol's line, ``minutes`` the time limit."""

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
    local: bool = False

    def text(self) -> str:
        """Snakemake source of the rule; equal rules give equal bytes."""
        if not self.name.isidentifier():
            raise ValueError(f"not a rule name: {self.name!r}")
        return _RULE.substitute(
            comment="".join(c if c.isprintable() else " " for c in self.comment),
            name=self.name,
            inputs=_block(f"{path!r}," for path in self.inputs),
            output=repr(self.output),
            params=_block(f"{key}={value!r}," for key, value in sorted(self.params.items())),
            log=repr(self.log),
            benchmark=repr(self.benchmark),
            threads=self.threads,
            minutes=self.minutes,
            local="    localrule: True\n" if self.local else "",
            message=repr(_braces(self.message)),
            script=repr(self.script),
        )


def _block(lines: Iterable[str]) -> str:
    return "\n".join(f"        {line}" for line in lines)


def _braces(message: str) -> str:
    """Double the braces: Snakemake formats messages, and an agent's title is only text."""
    return message.replace("{", "{{").replace("}", "}}")
