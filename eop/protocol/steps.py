"""The parts of a plan: phases, gates, the loop, and what is said of each."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any, NamedTuple

from eop.protocol.patterns import WORKER

# How a join waits.
ALL, ANY = "all", "any"
# A reviewer of another vendor than whose work it judges; ``ANY`` without that.
OTHER = "other"


@dataclass(frozen=True)
class Budget:
    """Limits of a node, a phase or a run. ``None``: the protocol sets no limit there.

    ``actions`` counts agent tool calls, ``wall_s`` seconds of work, ``attempts`` tries of one
    node, ``tokens`` those a model reads and writes, ``micro_usd`` millionths of a US dollar.
    """

    actions: int | None = None
    wall_s: int | None = None
    attempts: int = 1
    tokens: int | None = None
    micro_usd: int | None = None


class Amount(NamedTuple):
    """A sum of work: tool calls of agents, seconds, tokens, millionths of a dollar."""

    actions: int = 0
    wall_s: float = 0.0
    tokens: int = 0
    micro_usd: int = 0

    def __add__(self, other: Amount) -> Amount:  # type: ignore[override]
        return Amount(
            self.actions + other.actions,
            self.wall_s + other.wall_s,
            self.tokens + other.tokens,
            self.micro_usd + other.micro_usd,
        )

    def __sub__(self, other: Amount) -> Amount:
        return Amount(
            self.actions - other.actions,
            self.wall_s - other.wall_s,
            self.tokens - other.tokens,
            self.micro_usd - other.micro_usd,
        )


# What is spent: the word of the protocol, and the field of budgets, amounts and usages.
UNITS = {"actions": "actions", "tokens": "tokens", "usd": "micro_usd", "wall": "wall_s"}
# Fields that only agents spend: a function takes time and nothing else.
OF_AGENTS = ("actions", "tokens", "micro_usd")


def shown(field: str, value: float) -> str:
    """An amount as people read it: dollars, not millionths; seconds with their unit."""
    if field == "micro_usd":
        return f"{Decimal(int(value)).scaleb(-6).normalize():f}"
    return f"{value:g} s" if field == "wall_s" else f"{value:,}".replace(",", "")


@dataclass(frozen=True)
class Output:
    """An artifact that a phase must leave; ``file`` is its name in the node's artifact folder."""

    name: str
    file: str
    schema: str | None = None
    patch: bool = False


@dataclass(frozen=True)
class FanOut:
    """One branch per item of the list artifact ``artifact``; at most ``max`` of them."""

    item: str
    artifact: str
    max: int


@dataclass(frozen=True)
class Join:
    """A fan-in over the branches that phase ``of`` runs in; needs ``at_least`` completed.

    ``wait`` is ``all``: every branch goes its way to ``of``; or ``any``: as soon as ``at_least``
    have completed, nothing more of the others starts.
    """

    of: str
    at_least: int = 0
    wait: str = ALL


@dataclass(frozen=True)
class Review:
    """When a review stops: worst open finding at or under ``until``, or ``rounds`` spent.

    ``vendor`` is ``other`` where whoever judges must be of another vendor than whose work it is.
    """

    until: str = "minor"
    rounds: int = 2
    vendor: str = ANY


@dataclass(frozen=True)
class Workers:
    """The workers of a pattern ``bta``: one per part, the ``products`` taking turns.

    At most ``max`` parts, ``concurrency`` of them at once; the phase has failed when fewer than
    ``at_least`` workers complete.
    """

    products: tuple[str, ...]
    max: int
    concurrency: int = 2
    at_least: int = 1


@dataclass(frozen=True)
class Resources:
    """What the job of a phase needs of the machine that it runs on.

    ``cpus`` are cores, at least as many as it computes with; ``gpus`` whole GPUs; ``ram_mb``
    megabytes of main memory, ``None`` for what the profile gives a job.
    """

    cpus: int = 1
    gpus: int = 0
    ram_mb: int | None = None


@dataclass(frozen=True)
class Back:
    """Go back to phase ``to`` while ``when`` is true, at most ``max`` times in an iteration."""

    to: str
    when: str
    max: int


@dataclass(frozen=True)
class Phase:
    """A step of a protocol.

    ``branch`` is the item name when one instance runs per branch (``for_each``); ``fan_out`` is
    set on the phase that opens the branches. ``nodes`` maps role to product but for ``workers``,
    ``node_budgets`` role to what it may spend of the phase's budget. ``body`` is all that an agent
    of this phase is told of the protocol. ``when`` is the text of its guard; others go on without
    an ``optional`` phase. ``context`` is ``body``, or ``full`` when its agents are told the whole
    document. ``prompts`` are the digests of what its nodes are told by, as they were compiled.
    """

    id: str
    line: int
    title: str
    body: str
    needs: tuple[str, ...] = ()
    branch: str | None = None
    fan_out: FanOut | None = None
    join: Join | None = None
    on_branch: tuple[str, ...] = ("completed",)
    pattern: str | None = None
    nodes: dict[str, str] = field(default_factory=dict)
    review: Review | None = None
    check: str | None = None
    function: str | None = None
    arguments: dict[str, Any] = field(default_factory=dict)
    tools: tuple[str, ...] = ()
    budget: Budget = field(default_factory=Budget)
    outputs: tuple[Output, ...] = ()
    when: str | None = None
    optional: bool = False
    back: Back | None = None
    context: str = "body"
    node_budgets: dict[str, Budget] = field(default_factory=dict)
    workers: Workers | None = None
    prompts: dict[str, str] = field(default_factory=dict)
    resources: Resources = field(default_factory=Resources)

    @property
    def cast(self) -> tuple[tuple[str, str], ...]:
        """Every role with each product that plays it, workers last."""
        products = self.workers.products if self.workers else ()
        return (*self.nodes.items(), *((WORKER, product) for product in products))

    @cached_property
    def spends(self) -> tuple[str, ...]:
        """The fields of a budget that its work uses up: a ``function`` calls no agent."""
        return tuple(one for one in UNITS.values() if not (self.function and one in OF_AGENTS))

    @cached_property
    def reservation(self) -> Amount:
        """What an attempt at it sets aside: its declared budget, 0 where it declares none."""
        return Amount(**{one: getattr(self.budget, one) or 0 for one in self.spends})


@dataclass(frozen=True)
class OnReject:
    """What a rejected gate does: go back to ``goto`` at most ``max`` times, or end the run."""

    goto: str | None = None
    max: int = 0


@dataclass(frozen=True)
class Gate:
    """A human stop after ``after`` that shows the artifacts ``shows``."""

    id: str
    line: int
    after: tuple[str, ...]
    shows: tuple[str, ...]
    on_reject: OnReject
    question: str = ""


@dataclass(frozen=True)
class Loop:
    """Back to ``goto`` after ``after``; ``max`` turns in all, the first one included.

    Another turn begins only while the expression ``while_true`` is true, and not once
    ``until_true`` is.
    """

    id: str
    line: int
    after: tuple[str, ...]
    goto: str
    max: int
    while_true: str | None = None
    until_true: str | None = None
