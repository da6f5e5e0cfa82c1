"""The plan: a checked protocol as plain data, and its JSON form ``plan.json``."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from typing import Any

from eop.core.canonical import digest, plain
from eop.protocol.expressions import fields_of
from eop.protocol.steps import (
    ALL,
    ANY,
    OF_AGENTS,
    OTHER,
    UNITS,
    Amount,
    Back,
    Budget,
    FanOut,
    Gate,
    Join,
    Loop,
    OnReject,
    Output,
    Phase,
    Resources,
    Review,
    Workers,
    shown,
)

# The plan and its parts are one vocabulary: whoever uses it finds all of it here.
__all__ = [
    "ALL",
    "ANY",
    "OF_AGENTS",
    "OTHER",
    "PLAN_SCHEMA",
    "UNITS",
    "Amount",
    "Back",
    "Budget",
    "FanOut",
    "Gate",
    "Join",
    "Loop",
    "OnReject",
    "Output",
    "Phase",
    "Plan",
    "Resources",
    "Review",
    "Workers",
    "shown",
]
PLAN_SCHEMA = "plan/1"


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
        """Plain JSON data; ``from_json`` is its inverse.

        Roles are listed in pairs: a chain works in their order, which a JSON object does not keep.
        """
        data: dict[str, Any] = plain(asdict(self))
        for phase in data["phases"]:
            phase["nodes"] = [list(node) for node in phase["nodes"].items()]
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
    "resources": Resources,
    "review": Review,
    "workers": Workers,
    "back": Back,
    "on_reject": OnReject,
    "loop": Loop,
}
_NESTED_TABLES: dict[str, Any] = {"node_budgets": Budget}
_NESTED_TUPLES: dict[str, Any] = {"phases": Phase, "gates": Gate, "outputs": Output}


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
        elif item.name == "nodes":
            value = dict(value)
        elif isinstance(value, list):
            value = tuple(value)
        values[item.name] = value
    return cls(**values)
