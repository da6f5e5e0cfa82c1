"""What goes into an agent node and what comes out: the same for every product.

``docs/agents.md`` explains it; events and what is counted from them are in ``eop.agents.events``.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from decimal import Decimal
from enum import StrEnum
from math import ceil
from typing import TYPE_CHECKING, Any, Protocol

from eop.core.canonical import plain

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from eop.agents.events import Event
    from eop.agents.jail import Level


class Mode(StrEnum):
    """Whether a node may change the files of its workspace."""

    READ_ONLY = "read_only"
    WRITE = "write"


class Status(StrEnum):
    """How an invocation ended; ``eop.agents.status.decide`` picks the first that applies."""

    SETUP_ERROR = "setup_error"
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"
    POLICY_VIOLATION = "policy_violation"
    BUDGET_EXHAUSTED = "budget_exhausted"
    TRANSIENT_ERROR = "transient_error"
    AUTH_ERROR = "auth_error"
    QUOTA_EXHAUSTED = "quota_exhausted"
    CONFIG_ERROR = "config_error"
    REFUSED = "refused"
    CONTEXT_OVERFLOW = "context_overflow"
    STUCK = "stuck"
    INVALID_OUTPUT = "invalid_output"
    BLOCKED = "blocked"
    NO_CHANGE = "no_change"
    OK = "ok"


class Stop(StrEnum):
    """Why the runtime stopped a product."""

    TIMEOUT = "timeout"
    IDLE = "idle"
    BUDGET = "budget"
    OUTPUT_CAP = "output_cap"
    MEMORY = "memory"
    PROCESSES = "processes"
    DISK = "disk"
    CANCELLED = "cancelled"


@dataclass(frozen=True)
class Limits:
    """Bounds of one invocation; ``None`` is no bound.

    ``idle_s`` is the longest time without progress (a byte on a stream, a session file that grows,
    a call of the model), ``stdout_bytes`` the cap on the two streams together, ``grace_s`` the time
    after each of SIGINT and SIGTERM. ``actions`` is enforced while the product runs.
    ``model_calls``, tokens (read, written, or both: ``tokens``) and ``usd`` are held by the gateway
    before each call; without one they are judged when the product has ended. ``memory_share`` is of
    the machine's memory, ``disk_bytes`` of the attempt's folder.
    """

    actions: int | None = None
    wall_s: float = 3600.0
    idle_s: float = 900.0
    stdout_bytes: int = 64 << 20
    grace_s: float = 5.0
    model_calls: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    tokens: int | None = None
    usd: float | None = None
    memory_share: float = 0.75
    processes: int = 1000
    disk_bytes: int = 8 << 30


@dataclass(frozen=True)
class Endpoint:
    """Where a product finds its model: base URL and the token it may use. Never written down."""

    url: str
    token: str = field(repr=False)


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
    """Where in a run a node stands: all that a product may know of the run besides its task.

    ``round`` counts the turns of a review, ``part`` is the id of a worker's part of the work.
    """

    run: str
    node: str
    phase: str
    role: str
    iteration: int
    round: int = 1
    attempt: int = 1
    proposal: str | None = None
    part: str | None = None


@dataclass(frozen=True)
class Request:
    """One invocation of a product.

    ``directory`` is the attempt's own folder (layout: ``eop.agents.workspace``). ``store`` is the
    runtime's bare git store and ``base`` the id of the tree that the workspace was made from.
    ``endpoint`` is the model's API if it is not the product's own; the product itself is told of
    the gateway before it, and of the attempt's token, in its place.
    ``editable`` are the only globs that may change; everything else is protected. ``hidden``
    paths must stay unreadable even if a readable folder contains them. ``key`` is the same for
    every attempt at the same work. ``jail`` is what confines it, known when it is invoked.
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
    endpoint: Endpoint | None = None
    key: str = ""
    jail: Level | None = None

    @property
    def answer(self) -> Expected | None:
        """The output that the final answer itself is: the only one of a node that only reads."""
        alone = self.mode is Mode.READ_ONLY and len(self.outputs) == 1
        return self.outputs[0] if alone else None

    def to_json(self) -> dict[str, Any]:
        """The request as a product may read it: paths as text, without the runtime's own."""
        data: dict[str, Any] = plain(asdict(self))
        for private in ("store", "hidden", "task", "endpoint"):
            del data[private]
        return data


@dataclass(frozen=True)
class Command:
    """How to start a product: argv, its own environment variables, and what it must read.

    ``secrets`` are the values in ``env`` that must not be found in anything that is kept.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    read: tuple[Path, ...] = ()
    secrets: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class Recording:
    """What a product left of its run: its streams, its own session files, its exit status.

    Any of the files may be absent, unfinished or hostile. ``rc`` is negative for a signal and
    ``None`` as long as the product runs.
    """

    stdout: Path
    stderr: Path
    sessions: tuple[Path, ...] = ()
    rc: int | None = None


class Source(StrEnum):
    """Who says so."""

    RUNTIME = "runtime"
    PRODUCT = "product"
    GATEWAY = "gateway"


@dataclass(frozen=True)
class Reason:
    """Why a status was given: a stable code and a sentence for people."""

    code: str
    detail: str = ""
    http_status: int | None = None
    source: str = Source.RUNTIME


@dataclass(frozen=True)
class Change:
    """A path that differs between two trees: git's letter (A, M, D, T) and its mode afterwards."""

    path: str
    kind: str
    mode: str


@dataclass(frozen=True)
class Patch:
    """What a node did to its workspace: base and resulting tree ids and the paths between them.

    ``bytes`` and ``sha256`` are of the patch that leads from the one to the other, as it was proven
    to do.
    """

    base: str
    tree: str
    changes: tuple[Change, ...]
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Usage:
    """Tokens and money of one invocation; ``None`` is unknown, never 0.

    ``input`` includes ``cache_read`` and ``cache_write``, ``output`` includes ``reasoning``.
    ``usd_basis``: gateway, own-table, product-list, product-unknown or none. ``source``: gateway,
    final, session-file, stream-lower-bound, or ``None`` when nobody told. ``complete`` is false
    when the figures are a lower bound.
    """

    input: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    output: int | None = None
    reasoning: int | None = None
    usd: float | None = None
    usd_basis: str = "none"
    source: str | None = None
    complete: bool = False

    @property
    def tokens(self) -> int | None:
        """All that a model read and wrote; unknown when one of them is."""
        if self.input is None or self.output is None:
            return None
        return self.input + self.output

    @property
    def micro_usd(self) -> int | None:
        """Millionths of a dollar, rounded up: sums of them are exact."""
        return None if self.usd is None else ceil(Decimal(repr(self.usd)) * 1_000_000)


@dataclass(frozen=True)
class Counters:
    """Counts of one invocation; ``None`` is unknown, never 0.

    ``actions`` are distinct tool calls, ``denied`` those that the product refused. ``survivors``
    are processes that it left behind, killed at its end; a PID namespace ends them uncounted.
    """

    actions: int | None = None
    denied: int = 0
    model_calls: int | None = None
    retries: int = 0
    subagents: int = 0
    survivors: int | None = 0


@dataclass(frozen=True)
class Times:
    """When (seconds since the epoch, by this machine's clock) and how long, by a steady clock."""

    started: float | None = None
    first_event: float | None = None
    ended: float | None = None
    wall_s: float = 0.0


@dataclass(frozen=True)
class Exit:
    """How the process ended: exit status or signal, and why the runtime stopped it, if it did."""

    rc: int | None
    signal: int | None
    stop: Stop | None


@dataclass(frozen=True)
class ProductFacts:
    """Which program answered: name, version, sha256 of what runs; model and session as it says."""

    name: str
    version: str
    sha256: str
    model_reported: str | None = None
    session_id: str | None = None


@dataclass(frozen=True)
class Result:
    """What came of one invocation. Only ``ok`` may commit artifacts; the rest is evidence.

    ``retryable`` says whether the same work may be tried again (``eop.agents.retry``). ``text``
    and ``structured`` are the final answer. ``outputs`` maps output names to the files that were
    left and conform. ``notes`` tell what is worth knowing and breaks no rule.
    ``trace`` maps stdout, stderr and events to their files.
    """

    status: Status
    reason: Reason
    retryable: bool
    usage: Usage = field(default_factory=Usage)
    patch: Patch | None = None
    text: str | None = None
    structured: Any = None
    outputs: dict[str, Path] = field(default_factory=dict)
    counters: Counters = field(default_factory=Counters)
    times: Times = field(default_factory=Times)
    exit: Exit | None = None
    violations: tuple[str, ...] = ()
    product: ProductFacts | None = None
    notes: tuple[str, ...] = ()
    trace: dict[str, Path] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data for the attempt's record."""
        data: dict[str, Any] = plain(asdict(self))
        return data


class Product(Protocol):
    """A coding-agent product behind a pinned command line."""

    @property
    def name(self) -> str:
        """The word by which protocols call it."""

    @property
    def vendor(self) -> str:
        """Who makes it: two products of one vendor are no independent pair of eyes."""

    @property
    def trusted(self) -> bool:
        """Whether it may run without a jail."""

    @property
    def capabilities(self) -> frozenset[str]:
        """What it can be allowed or denied; asking for more is a ``setup_error``."""

    @property
    def answers(self) -> bool:
        """Whether its final answer is taken as the output ``Request.answer``."""

    @property
    def sessions(self) -> tuple[str, ...]:
        """Globs, below its HOME, of the files in which it keeps a record of its own."""

    def probe(self) -> ProductFacts:
        """Version facts; ``EopError`` when the product is missing."""

    def upstream(self) -> Endpoint | None:
        """The API of the model that it calls, with the real key; ``EopError`` when it is not set.

        It reaches nothing but the gateway before that API; ``None`` for one that calls no model.
        """

    def command(self, request: Request) -> Command:
        """The command line for one invocation; the prompt comes on standard input."""

    def parse(self, recording: Recording) -> list[Event]:
        """Normalised events of a run that may be unfinished, broken or empty; it never raises."""
