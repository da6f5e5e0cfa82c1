"""The plan: a checked protocol as plain data, and its JSON form ``plan.json``."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from decimal import Decimal
from functools import cached_property
from typing import Any, NamedTuple

from eop.core.canonical import digest
from eop.protocol.expressions import fields_of

PLAN_SCHEMA = "plan/1"
# How a join waits.
ALL, ANY = "all", "any"


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
    """When a dual pattern stops: worst open finding at or under ``until``, or ``rounds`` spent."""

    until: str = "minor"
    rounds: int = 2


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
    set on the phase that opens the branches. ``nodes`` maps role to product, ``node_budgets``
    role to what it may spend of the phase's budget. ``body`` is all that an agent of this phase
    is told of the protocol. ``when`` is the text of its guard; others go on without an
    ``optional`` phase. ``context`` is ``body``, or ``full`` when its agents are told the whole
    document.
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


@dataclass(frozen=True)
class Plan:
    """A compiled protocol. Immutable; ``digest`` identifies its meaning, not its position.

    ``facts`` are the fields of artifacts that its expressions read, with their types:
    ``{"preflight.passed": "boolean"}``. They are recorded when their producer leaves.
    ``document`` is the protocol's text where a phase is told all of it, else empty.
    """

    name: str
    version: str
    title: str
    source: str
    target: str
    variables: dict[str, Any]
    budget: Budget
    phases: tuple[Phase, ...]
    gates: tuple[Gate, ...]
    loop: Loop | None = None
    facts: dict[str, str] = field(default_factory=dict)
    document: str = ""
    schema: str = PLAN_SCHEMA

    @cached_property
    def digest(self) -> str:
        """Hex sha256 of the plan's JSON without file name and lines: moved text is equal."""
        return digest(_placeless(self.to_json()))

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data; ``from_json`` is its inverse."""
        data: dict[str, Any] = _plain(asdict(self))
        return data

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Plan:
        """Rebuild a plan from ``to_json`` data."""
        plan: Plan = _build(cls, data)
        return plan

    def phase(self, name: str) -> Phase:
        """The phase with this id; ``KeyError`` when there is none."""
        return self._phases[name]

    def gate(self, name: str) -> Gate:
        """The gate with this id; ``KeyError`` when there is none."""
        return self._gates[name]

    @cached_property
    def _phases(self) -> dict[str, Phase]:
        return {phase.id: phase for phase in self.phases}

    @cached_property
    def _gates(self) -> dict[str, Gate]:
        return {gate.id: gate for gate in self.gates}

    @cached_property
    def steps(self) -> dict[str, Phase | Gate]:
        """Phases and gates by id, in document order."""
        steps: list[Phase | Gate] = [*self.phases, *self.gates]
        return {step.id: step for step in sorted(steps, key=lambda step: step.line)}

    @cached_property
    def limits(self) -> tuple[tuple[str, float], ...]:
        """The fields of the run's budget that have a limit, with it."""
        found = ((one, getattr(self.budget, one)) for one in UNITS.values())
        return tuple((one, limit) for one, limit in found if limit is not None)

    def cutting(self, item: str) -> tuple[Phase, ...]:
        """The joins that do not wait for all branches of ``item``: they cut off the others."""
        return self._cutting.get(item, ())

    @cached_property
    def _cutting(self) -> dict[str, tuple[Phase, ...]]:
        found: dict[str, tuple[Phase, ...]] = {}
        for phase in self.phases:
            item = self.phase(phase.join.of).branch if phase.join else None
            if item and phase.join and phase.join.wait == ANY:
                found[item] = (*found.get(item, ()), phase)
        return found

    @cached_property
    def heads(self) -> tuple[Phase, ...]:
        """The phases that open branches, one per item, in document order."""
        return tuple(phase for phase in self.phases if phase.fan_out)

    def fan_out(self, item: str) -> FanOut:
        """The fan-out that opens the branches of ``item``; ``KeyError`` without one."""
        found = {opened.item: opened for head in self.heads if (opened := head.fan_out)}
        return found[item]

    def members(self, item: str) -> tuple[Phase, ...]:
        """The phases that run once per branch of ``item``, in document order."""
        return tuple(phase for phase in self.phases if phase.branch == item)

    def runs(self, function: str) -> bool:
        """Whether a phase runs the deterministic function of this name."""
        return any(phase.function == function for phase in self.phases)

    def requirements(self, name: str) -> tuple[str, ...]:
        """Ids that must be done before step ``name``: its needs, its join, a gate's ``after``."""
        return self._requirements[name]

    @cached_property
    def _requirements(self) -> dict[str, tuple[str, ...]]:
        return {name: _required(step) for name, step in self.steps.items()}

    def descendants(self, name: str) -> frozenset[str]:
        """Step ``name`` and everything that depends on it within one iteration."""
        return self._descendants[name]

    @cached_property
    def _descendants(self) -> dict[str, frozenset[str]]:
        return {name: self._below(name) for name in self.steps}

    def _below(self, name: str) -> frozenset[str]:
        found = {name}
        grew = True
        while grew:
            more = {s for s in self.steps if found & set(self.requirements(s))} - found
            found |= more
            grew = bool(more)
        return frozenset(found)

    @cached_property
    def names(self) -> frozenset[str]:
        """Ids of all steps."""
        return frozenset(self.steps)

    def branch_path(self, name: str) -> frozenset[str]:
        """Ids of the phases of its branch, or of those it joins, that ``name`` comes after."""
        return self._branch_paths[name]

    @cached_property
    def _branch_paths(self) -> dict[str, frozenset[str]]:
        return {name: self._path_before(name) for name in self.steps}

    def _path_before(self, name: str) -> frozenset[str]:
        phase = self._phases.get(name)
        joined = self.phase(phase.join.of).branch if phase and phase.join else None
        item = joined or (phase.branch if phase else None)
        before = (one.id for one in self.phases if item and one.branch == item and one.id != name)
        return frozenset(one for one in before if name in self.descendants(one))

    @cached_property
    def body(self) -> frozenset[str]:
        """Steps that every iteration runs; without a loop, all of them."""
        return self.descendants(self.loop.goto) if self.loop else frozenset(self.steps)

    def owed(self, name: str) -> dict[str, str]:
        """Facts that phase ``name`` must come with once it has completed, and their types."""
        return self._owed[name]

    @cached_property
    def _owed(self) -> dict[str, dict[str, str]]:
        found: dict[str, dict[str, str]] = {phase.id: {} for phase in self.phases}
        for term, kind in self.facts.items():
            found[self.producer(fields_of(term)[0]).id][term] = kind
        return found

    def producer(self, artifact: str) -> Phase:
        """The phase that leaves ``artifact``; ``KeyError`` when none does."""
        return self._producers[artifact]

    @cached_property
    def _producers(self) -> dict[str, Phase]:
        return {output.name: phase for phase in self.phases for output in phase.outputs}


def _required(step: Phase | Gate) -> tuple[str, ...]:
    if isinstance(step, Gate):
        return step.after
    joined = (step.join.of,) if step.join else ()
    return tuple(dict.fromkeys([*step.needs, *joined]))


_NESTED: dict[str, Any] = {
    "budget": Budget,
    "fan_out": FanOut,
    "join": Join,
    "review": Review,
    "back": Back,
    "on_reject": OnReject,
    "loop": Loop,
}
_NESTED_TABLES: dict[str, Any] = {"node_budgets": Budget}
_NESTED_TUPLES: dict[str, Any] = {"phases": Phase, "gates": Gate, "outputs": Output}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _placeless(plan: dict[str, Any]) -> dict[str, Any]:
    def strip(step: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in step.items() if key != "line"}

    loop = plan["loop"]
    return {
        **{key: value for key, value in plan.items() if key != "source"},
        "phases": [strip(step) for step in plan["phases"]],
        "gates": [strip(step) for step in plan["gates"]],
        "loop": None if loop is None else strip(loop),
    }


def _build(cls: Any, data: dict[str, Any]) -> Any:
    values = {}
    for item in fields(cls):
        value = data[item.name]
        if value is not None and item.name in _NESTED:
            value = _build(_NESTED[item.name], value)
        elif item.name in _NESTED_TABLES:
            nested = _NESTED_TABLES[item.name]
            value = {key: _build(nested, entry) for key, entry in value.items()}
        elif item.name in _NESTED_TUPLES:
            value = tuple(_build(_NESTED_TUPLES[item.name], entry) for entry in value)
        elif isinstance(value, list):
            value = tuple(value)
        values[item.name] = value
    return cls(**values)
