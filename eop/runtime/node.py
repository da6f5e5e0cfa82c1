"""One node of a run: its name, what it is given, what it leaves."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

_KEY = re.compile(
    r"it(?P<iteration>\d{2,})_(?:(?P<branch>p\d{2})_)?(?P<step>[a-z][a-z0-9_]*?)(?:_r(?P<revision>\d+))?"
)
# A step name must not look like a branch prefix or a revision suffix, or keys would be ambiguous.
STEP_NAME = re.compile(r"(?!p\d\d_)(?!.*_r\d+$)[a-z][a-z0-9_]*(?<!_)")
BRANCH_NAME = re.compile(r"p\d{2}")


@dataclass(frozen=True, order=True)
class Instance:
    """A step in one iteration, in one branch or none. ``revision`` counts rework after a rejection.

    ``key`` (``it02_p03_train``, ``it01_propose_r2``) names its events, rule, log and benchmark;
    ``directory`` (``it02/p03/train``) is its folder below the run's.
    """

    iteration: int
    step: str
    branch: str | None = None
    revision: int = 1

    @cached_property
    def key(self) -> str:
        """Its one name."""
        branch = f"{self.branch}_" if self.branch else ""
        revision = f"_r{self.revision}" if self.revision > 1 else ""
        return f"it{self.iteration:02d}_{branch}{self.step}{revision}"

    @property
    def directory(self) -> str:
        """Its folder, relative to the run's."""
        parts = [f"it{self.iteration:02d}", *([self.branch] if self.branch else [])]
        revision = f".r{self.revision}" if self.revision > 1 else ""
        return "/".join([*parts, self.step + revision])

    @classmethod
    @lru_cache(maxsize=4096)
    def parse(cls, key: str) -> Instance:
        """The inverse of ``key``; ``ValueError`` for any other text."""
        match = _KEY.fullmatch(key)
        if match is None:
            raise ValueError(f"not a node name: {key!r}")
        return cls(
            int(match["iteration"]), match["step"], match["branch"], int(match["revision"] or 1)
        )


@dataclass(frozen=True, order=True)
class Branch:
    """One path of a fan-out: the item's name in the protocol, and which of them (``p01``)."""

    item: str
    name: str


class Outcome(StrEnum):
    """How a node ended. Only ``completed`` commits artifacts that others build on."""

    COMPLETED = "completed"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    BUDGET_EXHAUSTED = "budget_exhausted"
    BLOCKED = "blocked"
    TAMPERED = "tampered"
    SKIPPED = "skipped"


class Artifact(NamedTuple):
    """A committed file: path relative to the project's root, digest, size in bytes."""

    name: str
    path: str
    sha256: str
    size: int


class Usage(NamedTuple):
    """What a node spent. ``None`` stands for what nobody could count: it is never 0 then.

    ``tokens`` are those that models read and wrote, ``micro_usd`` millionths of a US dollar.
    """

    actions: int | None = 0
    wall_s: float = 0.0
    tokens: int | None = None
    micro_usd: int | None = None


@dataclass(frozen=True)
class NodeResult:
    """What the work of a node came to; ``artifacts`` maps output name to the file it left."""

    outcome: Outcome
    reason: str = ""
    artifacts: dict[str, Path] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
