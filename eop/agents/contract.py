"""What goes into an agent node and what comes out: the same for every product."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping


class Mode(StrEnum):
    """Whether a node may change the files of its workspace."""

    READ_ONLY = "read_only"
    WRITE = "write"


class Status(StrEnum):
    """How an invocation ended; ``eop.agents.status.decide`` picks the first that applies."""

    SETUP_ERROR = "setup_error"
    TIMEOUT = "timeout"
    POLICY_VIOLATION = "policy_violation"
    BUDGET_EXHAUSTED = "budget_exhausted"
    FAILED = "failed"
    INVALID_OUTPUT = "invalid_output"
    BLOCKED = "blocked"
    NO_CHANGE = "no_change"
    OK = "ok"


RETRYABLE = frozenset({Status.FAILED, Status.INVALID_OUTPUT})


@dataclass(frozen=True)
class Limits:
    """Bounds of one invocation. ``actions`` is ``None`` when only time bounds it.

    ``idle_s`` is the longest silence on both streams, ``stdout_bytes`` the cap on the two streams
    together, ``grace_s`` the time between SIGTERM and SIGKILL.
    """

    actions: int | None = None
    wall_s: float = 3600.0
    idle_s: float = 900.0
    stdout_bytes: int = 64 << 20
    grace_s: float = 5.0


@dataclass(frozen=True)
class Prior:
    """An earlier artifact, handed over as a read-only copy below the attempt's ``inputs/``."""

    name: str
    path: Path
    sha256: str


@dataclass(frozen=True)
class Expected:
    """A file that the node must leave in ``outputs/``; ``schema`` is a JSON Schema or ``None``."""

    name: str
    file: str
    schema: dict[str, Any] | None = None


@dataclass(frozen=True)
class Turn:
    """Where in a run a node stands: all that a product may know of the run besides its task."""

    run: str
    node: str
    phase: str
    role: str
    iteration: int
    round: int = 1
    attempt: int = 1
    proposal: str | None = None


@dataclass(frozen=True)
class Request:
    """One invocation of a product.

    ``directory`` is the attempt's own folder (layout: ``eop.agents.workspace``). ``store`` is the
    runtime's bare git store and ``base`` the id of the tree that the workspace was made from.
    ``editable`` are the only globs that may change; everything else is protected. ``hidden``
    paths must stay unreadable even if a readable folder contains them.
    """

    turn: Turn
    product: str
    task: str
    directory: Path
    store: Path
    base: str
    mode: Mode
    editable: tuple[str, ...]
    capabilities: tuple[str, ...]
    limits: Limits
    inputs: tuple[Prior, ...] = ()
    outputs: tuple[Expected, ...] = ()
    hidden: tuple[Path, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The request as a product may read it: paths as text, without the runtime's own."""
        data: dict[str, Any] = _plain(asdict(self))
        for private in ("store", "hidden", "task"):
            del data[private]
        return data


@dataclass(frozen=True)
class Command:
    """How to start a product: argv, its own environment variables, and what it must read."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    read: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Event:
    """A normalised event of a product's stream.

    ``kind`` is one of started, tool_call, message, usage, final, other; ``data`` holds its fields
    (tool_call: id, name, capability, target, outcome ok|failed|denied; final: status
    success|error, text).
    """

    kind: str
    data: dict[str, Any]


@dataclass(frozen=True)
class Reason:
    """Why a status was given: a stable code and a sentence for people."""

    code: str
    detail: str = ""


@dataclass(frozen=True)
class Change:
    """A path that differs between two trees; ``kind`` is git's letter (A, M, D, T)."""

    path: str
    kind: str


@dataclass(frozen=True)
class Patch:
    """What a node did to its workspace: base and resulting tree ids and the paths between them."""

    base: str
    tree: str
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class Spent:
    """What an invocation used. ``actions`` is ``None`` when nobody could count them.

    ``source`` says where the count comes from; ``complete`` is false when the product was cut
    short, so that the count is a lower bound.
    """

    actions: int | None
    wall_s: float
    source: str
    complete: bool


@dataclass(frozen=True)
class Exit:
    """How the process ended: exit status or signal, and why the runtime stopped it, if it did."""

    rc: int | None
    signal: int | None
    stop: str | None
    survivors: int


@dataclass(frozen=True)
class ProductFacts:
    """Which program answered: name, version, sha256 of what runs."""

    name: str
    version: str
    sha256: str


@dataclass(frozen=True)
class Result:
    """What came of one invocation. Only ``ok`` may commit artifacts; the rest is evidence.

    ``outputs`` maps output names to the files that were left and conform. ``trace`` maps stdout,
    stderr and events to their files.
    """

    status: Status
    reason: Reason
    usage: Spent
    patch: Patch | None = None
    outputs: dict[str, Path] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    exit: Exit | None = None
    violations: tuple[str, ...] = ()
    product: ProductFacts | None = None
    trace: dict[str, Path] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data for the attempt's record."""
        data: dict[str, Any] = _plain(asdict(self))
        return data


class Product(Protocol):
    """A coding-agent product behind a pinned command line."""

    @property
    def name(self) -> str:
        """The word by which protocols call it."""

    @property
    def trusted(self) -> bool:
        """Whether it may run without a jail."""

    @property
    def network(self) -> bool:
        """Whether it needs the network."""

    @property
    def capabilities(self) -> frozenset[str]:
        """What it can be allowed or denied; asking for more is a ``setup_error``."""

    def probe(self) -> ProductFacts:
        """Version facts; ``EopError`` when the product is missing."""

    def command(self, request: Request) -> Command:
        """The command line for one invocation; the prompt comes on standard input."""

    def parse(self, stdout: Path) -> list[Event]:
        """Normalised events of a stream that may be unfinished, broken or empty."""


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value
