"""From blocks to typed steps that still know their places: the input of the checks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from eop.core.errors import did_you_mean
from eop.protocol.diagnostics import Span
from eop.protocol.markers import CONTEXTS, EDGES, FRONT, KINDS
from eop.protocol.model import (
    ALL,
    ANY,
    UNITS,
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
)
from eop.protocol.patterns import PATTERNS, REVIEWED, WORKER
from eop.protocol.shapes import mismatch, read_fields
from eop.protocol.signatures import FUNCTIONS
from eop.protocol.yaml_nodes import Listing, Mapping, Scalar, parse_yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

    from eop.protocol.diagnostics import Report
    from eop.protocol.document import Block, Document
    from eop.protocol.yaml_nodes import Node

S = TypeVar("S", Phase, Gate, Loop)


@dataclass(frozen=True)
class Placed(Generic[S]):
    """A step with its YAML. ``doubtful``: its edges are not all known, so trust no path to it."""

    value: S
    node: Mapping
    doubtful: bool = False

    @property
    def name(self) -> Span:
        """Where its name stands."""
        return _opening(self.node)

    def having(self, value: S, *, doubtful: bool = False) -> Placed[S]:
        """The same step with another value; doubt is never lost."""
        return replace(self, value=value, doubtful=self.doubtful or doubtful)


@dataclass(frozen=True)
class Draft:
    """A protocol as read, faults and all.

    ``broken`` are the names of blocks that could not be read or taken in: what they would have
    added is not known.
    """

    title: str
    front: dict[str, Any]
    front_node: Mapping | None
    phases: tuple[Placed[Phase], ...]
    gates: tuple[Placed[Gate], ...]
    loops: tuple[Placed[Loop], ...]
    broken: frozenset[str]

    @property
    def steps(self) -> Iterator[Placed[Phase] | Placed[Gate]]:
        """Phases and gates in document order."""
        both: list[Placed[Phase] | Placed[Gate]] = [*self.phases, *self.gates]
        return iter(sorted(both, key=lambda step: step.value.line))

    @property
    def all_steps(self) -> Iterator[Placed[Phase] | Placed[Gate] | Placed[Loop]]:
        """Phases, gates and loops."""
        yield from self.phases
        yield from self.gates
        yield from self.loops

    @property
    def outputs_known(self) -> bool:
        """Whether every output that the document declares could be read."""
        return not self.broken and all(
            len(phase.value.outputs) == _size(phase.node.values.get("outputs"))
            for phase in self.phases
        )

    @property
    def heads(self) -> dict[str, Placed[Phase]]:
        """The phase that opens the branches of each item, the first one where there are several."""
        opened: dict[str, Placed[Phase]] = {}
        for phase in self.phases:
            if phase.value.fan_out:
                opened.setdefault(phase.value.fan_out.item, phase)
        return opened

    def most_branches(self, item: str | None) -> int | None:
        """The bound of an item's fan-out; ``None`` without one, or when it could not be read."""
        head = self.heads.get(item) if item else None
        fan_out = head.value.fan_out if head else None
        return (fan_out.max or None) if fan_out else None

    def branch_of(self, step: str) -> str | None:
        """The item whose branches a phase runs in; ``None`` outside of branches."""
        return next((phase.value.branch for phase in self.phases if phase.value.id == step), None)

    @property
    def budget(self) -> Budget:
        """The run's budget, as far as it could be read."""
        return _budget(self.front.get("budget"))


def build_draft(document: Document, report: Report) -> Draft:
    """Read every block of ``document``; what is malformed is reported and left out."""
    front_node, front = _front(document, report)
    placed: dict[str, list[Any]] = {kind: [] for kind in KINDS}
    broken: set[str] = set()
    seen: dict[str, int] = {}
    for block in document.blocks:
        node = _read(block, report)
        step = None if node is None else _step(node, block, front, report)
        if node is None or step is None:
            broken.update(block.names)
        elif _is_new(step, seen, report):
            placed[next(iter(node.keys))].append(step)
        else:
            broken.add(step.value.id)
    if not placed["phase"] and not broken:
        hint = "add a fence '```eop' that begins with 'phase: name'"
        report.error("EOP117", "the protocol has no phase", Span(1), hint)
    title = document.title or str(front.get("name", ""))
    return Draft(
        title=title,
        front=front,
        front_node=front_node,
        phases=tuple(placed["phase"]),
        gates=tuple(placed["gate"]),
        loops=tuple(placed["loop"]),
        broken=frozenset(broken),
    )


def _opening(node: Mapping) -> Span:
    """Where a block, or the front matter, begins to say what it is: its first value."""
    return next((value.span for value in node.values.values()), node.span)


def _front(document: Document, report: Report) -> tuple[Mapping | None, dict[str, Any]]:
    if document.front is None:
        return None, {}
    before = report.count
    node = parse_yaml(document.front.lines, document.front.first_line, report)
    if isinstance(node, Mapping):
        return node, read_fields(node, FRONT, "the front matter", report, _opening(node))
    if node is not None:
        mismatch(node, "keys and values", report, "write 'name: ...'")
    elif report.count == before:
        required = ", ".join(key for key, field in FRONT.items() if field.required)
        hint = f"it needs the keys {required}"
        report.error("EOP105", "the front matter is empty", Span(1, 1, 3), hint)
    return None, {}


def _read(block: Block, report: Report) -> Mapping | None:
    """The block's YAML when it is a phase, a gate or a loop by its first key."""
    if block.chunk is None:
        return None
    before = report.count
    node = parse_yaml(block.chunk.lines, block.chunk.first_line, report)
    if node is None and report.count > before:
        return None
    if not isinstance(node, Mapping) or not node.keys:
        span = Span(block.line, 1, 6) if node is None else node.span
        hint = "begin with 'phase: name', 'gate: name' or 'loop: name'"
        report.error("EOP111", "the block says nothing that could run", span, hint)
        return None
    first = next(iter(node.keys))
    if first in KINDS:
        return node
    later = next((key for key in node.keys if key in KINDS), None)
    moved = f"move '{later}' to the first line" if later else None
    hint = moved or did_you_mean(first, KINDS) or f"begin with one of: {', '.join(KINDS)}"
    report.error("EOP111", f"a block cannot begin with '{first}'", node.keys[first], hint)
    return None


def _is_new(step: Placed[Any], seen: dict[str, int], report: Report) -> bool:
    name: str = step.value.id
    if name in seen:
        hint = f"the first one is on line {seen[name]}"
        report.error("EOP202", f"the name '{name}' is taken", step.name, hint)
        return False
    seen[name] = step.name.line
    return True


def _step(node: Mapping, block: Block, front: dict[str, Any], report: Report) -> Placed[Any] | None:
    kind = next(iter(node.keys))
    values = read_fields(node, KINDS[kind], f"a {kind}", report, _opening(node))
    raw = node.values[kind]
    name = raw.value if isinstance(raw, Scalar) else None
    if not isinstance(name, str) or not name:
        return None
    doubtful = not _edges_known(node, values)
    if kind == "phase":
        values.setdefault("context", front.get("context", CONTEXTS[0]))
        return Placed(_phase(name, values, node, block, report), node, doubtful)
    if kind == "gate":
        return Placed(_gate(name, values, block), node, doubtful)
    return Placed(_loop(name, values, block), node, doubtful)


def _edges_known(node: Mapping, values: dict[str, Any]) -> bool:
    """Whether everything that ties the step to others could be read."""
    fields = KINDS[next(iter(node.keys))]
    if any(key not in fields and did_you_mean(key, EDGES) for key in node.keys):
        return False
    for key in EDGES & fields.keys():
        child, value = node.values.get(key), values.get(key)
        if (child is None) != (value is None) or (fields[key].required and child is None):
            return False
        if isinstance(child, Listing) and len(value or ()) < len(child.items):
            return False
    opens = values.get("for_each")
    if isinstance(opens, dict) and not {"item", "in"} <= opens.keys():
        return False
    return "of" in values.get("join", {"of": ""})


def _phase(name: str, values: dict[str, Any], node: Mapping, block: Block, report: Report) -> Phase:
    loop_over = values.get("for_each")
    fan_out, branch = None, loop_over
    if isinstance(loop_over, dict):
        branch = loop_over.get("item")
        if {"item", "in"} <= loop_over.keys():
            fan_out = FanOut(loop_over["item"], loop_over["in"], loop_over.get("max", 0))
    join = values.get("join") or {}
    review, back = values.get("review"), values.get("goto") or {}
    nodes, budget = values.get("nodes", {}), _budget(values.get("budget"))
    workers = _workers(values)
    return Phase(
        id=name,
        line=block.line,
        title=block.heading or name.replace("_", " ").capitalize(),
        body=block.prose,
        needs=values.get("needs", ()),
        branch=branch,
        fan_out=fan_out,
        join=_join(join),
        on_branch=values.get("on_branch") or ("completed",),
        pattern=values.get("pattern"),
        nodes=_cast(values.get("pattern"), nodes, workers),
        workers=workers,
        resources=_resources(values.get("resources", {})),
        node_budgets={
            role: _budget(node["budget"], attempts=budget.attempts)
            for role, node in nodes.items()
            if "budget" in node
        },
        review=Review(**(review or {})) if values.get("pattern") in REVIEWED else None,
        check=values.get("check"),
        function=values.get("function"),
        arguments=_arguments(values, node, report),
        tools=values.get("tools", ()),
        budget=budget,
        outputs=_outputs(values.get("outputs", {})),
        when=values.get("when"),
        optional=values.get("optional", False),
        context=values["context"],
        back=Back(**back) if {"to", "when", "max"} <= back.keys() else None,
    )


def _cast(pattern: str | None, nodes: dict[str, Any], workers: Workers | None) -> dict[str, str]:
    """Role to product, stand-ins included; the products of workers are a matter of their own."""
    cast = {
        role: node["product"][0]
        for role, node in nodes.items()
        if workers is None or role != WORKER
    }
    stand_ins = PATTERNS[pattern].stand_ins if pattern else {}
    for role, other in stand_ins.items():
        if role not in cast and other in cast:
            cast[role] = cast[other]
    return cast


def _workers(values: dict[str, Any]) -> Workers | None:
    products = values.get("nodes", {}).get(WORKER, {}).get("product")
    bounds = values.get("workers", {})
    if values.get("pattern") != "bta" or not products or "max" not in bounds:
        return None
    concurrency = bounds.get("concurrency", min(Workers.concurrency, bounds["max"]))
    return Workers(products, **{**bounds, "concurrency": concurrency})


def _join(found: dict[str, Any]) -> Join | None:
    if "of" not in found:
        return None
    wait = found.get("wait", ALL)
    return Join(found["of"], found.get("at_least", 1 if wait == ANY else 0), wait)


def _outputs(found: dict[str, dict[str, Any]]) -> tuple[Output, ...]:
    return tuple(Output(key, **values) for key, values in found.items() if "file" in values)


def _arguments(values: dict[str, Any], node: Mapping, report: Report) -> dict[str, Any]:
    """The arguments of the phase's function, typed by its signature."""
    function = values.get("function")
    if function is None:
        return {}
    fields = FUNCTIONS[function].arguments
    given = values.get("with", Mapping({}, {}, node.at("function")))
    if not isinstance(given, Mapping):
        mismatch(given, "a mapping", report, "write {seeds: [1]}")
        return {}
    found = read_fields(given, fields, f"'with' of '{function}'", report, given.span)
    return {key: list(value) if isinstance(value, tuple) else value for key, value in found.items()}


def _gate(name: str, values: dict[str, Any], block: Block) -> Gate:
    reject = values.get("on_reject", {})
    return Gate(
        id=name,
        line=block.line,
        after=values.get("after", ()),
        shows=values.get("shows", ()),
        on_reject=OnReject(reject.get("goto"), reject.get("max", 0)),
        question=block.prose,
    )


def _loop(name: str, values: dict[str, Any], block: Block) -> Loop:
    return Loop(
        id=name,
        line=block.line,
        after=values.get("after", ()),
        goto=values.get("goto", ""),
        max=values.get("max", 1),
        while_true=values.get("while"),
        until_true=values.get("until"),
    )


def _size(node: Node | None) -> int:
    """How many outputs a phase seems to declare; one when that cannot be told."""
    return len(node.keys) if isinstance(node, Mapping) else 1


def _resources(found: dict[str, int]) -> Resources:
    return Resources(found.get("cpus", 1), found.get("gpus", 0), found.get("ram"))


def _budget(values: dict[str, Any] | None, attempts: int = 1) -> Budget:
    found = values or {}
    limits = {field: found.get(unit) for unit, field in UNITS.items()}
    return Budget(attempts=found.get("attempts", attempts), **limits)
