"""Decisions: what the expressions of a protocol read, its types, and that it is known by then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from eop.core.errors import did_you_mean
from eop.protocol.expression_parser import parse
from eop.protocol.expression_types import INTEGER, Fault, Type, decides
from eop.protocol.expressions import (
    BRANCHES,
    BUILT_INS,
    FRUITLESS,
    PROMOTED_FACTS,
    Name,
    Place,
    demands,
    fields_of,
)
from eop.protocol.schema_fields import FieldError, field_type
from eop.protocol.schemas import Schemas
from eop.protocol.signatures import FUNCTIONS
from eop.protocol.written import parsed
from eop.protocol.yaml_nodes import Mapping

if TYPE_CHECKING:
    from pathlib import Path

    from eop.protocol.diagnostics import Report, Span
    from eop.protocol.draft import Draft, Placed
    from eop.protocol.graph import Graph
    from eop.protocol.model import Output, Phase
    from eop.protocol.yaml_nodes import Node


def check_decisions(draft: Draft, graph: Graph, report: Report, root: Path) -> dict[str, str]:
    """Check every expression; the fields of artifacts that they read, with their types."""
    reader = _Reader(draft, graph, report, Schemas(root, report))
    for phase in draft.phases:
        name, branch = phase.value.id, phase.value.branch
        above = graph.ancestors(name)
        moment = _Moment(f"'{name}'", above, branch, doubtful=name in graph.doubtful)
        sound = reader.check(phase.node.values.get("when"), moment)
        if sound and not moment.doubtful:
            _guarded(phase, above, draft, report)
        goto = phase.node.values.get("goto")
        own = _Moment(f"'{name}'", above | {name}, branch, doubtful=name in graph.doubtful)
        reader.check(getattr(goto, "values", {}).get("when"), own)
    for loop in draft.loops:
        done = graph.ancestors(*loop.value.after) | set(loop.value.after)
        doubtful = loop.doubtful or bool(graph.doubtful & done)
        moment = _Moment(f"the loop '{loop.value.id}'", done, None, doubtful=doubtful)
        for key in ("while", "until"):
            reader.check(loop.node.values.get(key), moment)
        if {"while", "until"} <= loop.node.keys.keys():
            message = "'until' contradicts 'while'"
            hint = "keep one: until: x is while: not x"
            report.error("EOP414", message, loop.node.key("until"), hint)
    return dict(sorted(reader.facts.items()))


def _guarded(phase: Placed[Phase], above: frozenset[str], draft: Draft, report: Report) -> None:
    """A function that must not run on what a check has found wanting runs behind a guard."""
    guard = FUNCTIONS[phase.value.function].guard if phase.value.function else None
    if guard is None:
        return
    artifact, when = fields_of(guard)[0], phase.value.when
    left = any(
        o.name == artifact for p in draft.phases if p.value.id in above for o in p.value.outputs
    )
    if not left or (when is not None and demands(parse(when), guard)):
        return
    message = f"'{phase.value.id}' would run where '{guard}' is false"
    span = phase.node.at("function") if when is None else phase.node.at("when")
    hint = f"write when: {guard}" if when is None else f"write when: {guard} and ({when})"
    report.error("EOP416", message, span, hint)


@dataclass(frozen=True)
class _Moment:
    """When an expression is evaluated: by whom, what is done by then, in a branch or in none."""

    user: str
    done: frozenset[str]
    branch: str | None
    doubtful: bool


class _Reader:
    """Gives names their types, and keeps the facts that were asked for."""

    def __init__(self, draft: Draft, graph: Graph, report: Report, schemas: Schemas) -> None:
        self.facts: dict[str, str] = {}
        self._draft = draft
        self._graph = graph
        self._report = report
        self._schemas = schemas
        self._variables = draft.front.get("variables", {})
        self._variables_known = _variables_known(draft)
        self._producers: dict[str, tuple[Placed[Phase], Output]] = {}
        for phase in draft.phases:
            for output in phase.value.outputs:
                self._producers.setdefault(output.name, (phase, output))
        self._ambiguous()

    def _ambiguous(self) -> None:
        """A variable and an artifact of one name: an expression could mean either."""
        front = self._draft.front_node
        written = front.values.get("variables") if front else None
        for name in self._variables.keys() & self._producers.keys():
            if isinstance(written, Mapping):
                message = f"'{name}' is the name of an artifact as well"
                hint = "give the variable another name"
                self._report.error("EOP304", message, written.key(name), hint)

    def check(self, node: Node | None, moment: _Moment) -> bool:
        """Report the faults of the expression at ``node``; whether it is sound, or not there."""
        found = None if node is None else parsed(node, self._report)
        if found is None:
            return node is None
        written, tree = found
        faults = decides(tree, lambda name: self._type(name, moment, written.span(name.place)))
        for fault in faults:
            place = written.span(fault.place)
            self._report.error(fault.code, fault.message, place, fault.hint)
        return not faults

    def _type(self, name: Name, moment: _Moment, span: Span) -> Type | Fault | None:
        artifact, *fields = name.path.split(".")
        if not fields and artifact in self._variables:
            return _of_variable(name, self._variables[artifact]["type"])
        if not fields and artifact in BUILT_INS and not name.length:
            return self._built_in(name, moment)
        if artifact not in self._producers:
            return self._unknown(name, artifact, fields)
        if not fields and not name.length:
            hint = f"name a field of it, as {artifact}.field, or ask for len({artifact})"
            return Fault("EOP212", f"'{artifact}' is an artifact, not a value", name.place, hint)
        phase, output = self._producers[artifact]
        late = self._late(artifact, phase, moment, name.place)
        return late or self._field(name, artifact, fields, output, span)

    def _field(
        self, name: Name, artifact: str, fields: list[str], output: Output, span: Span
    ) -> Type | Fault | None:
        if output.schema is None:
            hint = "give its output a schema that declares what it holds"
            return Fault("EOP213", f"'{artifact}' has no schema", name.place, hint)
        schema = self._schemas.load(output.schema, span)
        if schema is None:
            return None
        try:
            found = field_type(schema, fields, length=name.length)
        except FieldError as error:
            message = f"'{name.path}': {error.message}"
            return Fault("EOP213", message, _part(name, error.index + 1), error.hint)
        self.facts[name.term] = found.kind
        return found

    def _built_in(self, name: Name, moment: _Moment) -> Type | Fault:
        if name.path == FRUITLESS:
            if not any(phase.value.function == "promote" for phase in self._draft.phases):
                hint = "add a phase with 'function: promote'"
                return Fault("EOP212", "no phase promotes anything", name.place, hint)
            self.facts |= dict.fromkeys(PROMOTED_FACTS, "text")
        return self._branches(name, moment) if name.path == BRANCHES else INTEGER

    def _branches(self, name: Name, moment: _Moment) -> Type | Fault:
        """Of which fan-out the number is asked must be plain."""
        heads = [head.value.id for head in self._draft.heads.values()]
        if not heads:
            hint = "open branches with for_each: {item: ..., in: ..., max: 5}"
            return Fault("EOP212", "the protocol has no branches", name.place, hint)
        opened = [head for head in heads if self._graph.below([head]) & moment.done]
        if moment.branch is None and len(opened) > 1:
            message = f"branches are opened by {' and '.join(opened)}"
            hint = "ask for the length of one list: len(proposals)"
            return Fault("EOP212", message, name.place, hint)
        if moment.branch is None and not opened and not moment.doubtful:
            return _before(f"branches are opened by '{heads[0]}'", moment, heads[0], name.place)
        return INTEGER

    def _unknown(self, name: Name, artifact: str, fields: list[str]) -> Fault | None:
        if self._draft.broken or not self._draft.outputs_known:
            return None
        place = _part(name, 0)
        if not fields and not self._variables_known:
            return None
        if not fields:
            words = [*self._variables, *BUILT_INS, *self._producers, "true", "false"]
            hint = did_you_mean(artifact, words) or f"known: {', '.join(words[:-2])}"
            return Fault("EOP212", f"'{artifact}' means nothing here", place, hint)
        hint = did_you_mean(artifact, self._producers) or f"known: {', '.join(self._producers)}"
        return Fault("EOP203", f"no phase leaves an artifact '{artifact}'", place, hint)

    def _late(
        self, artifact: str, phase: Placed[Phase], moment: _Moment, place: Place
    ) -> Fault | None:
        producer = phase.value
        if producer.branch and producer.branch != moment.branch:
            message = f"'{artifact}' is left once per branch, by '{producer.id}'"
            hint = "use what the phase that joins them leaves"
            return Fault("EOP508", message, place, hint)
        if producer.id in moment.done or moment.doubtful:
            return None
        return _before(f"'{artifact}' is left by '{producer.id}'", moment, producer.id, place)


def _variables_known(draft: Draft) -> bool:
    """Whether every variable that the front matter declares could be read."""
    if draft.front_node is None:
        return False
    written = draft.front_node.values.get("variables")
    return len(getattr(written, "keys", ())) == len(draft.front.get("variables", {}))


def _before(message: str, moment: _Moment, needed: str, place: Place) -> Fault:
    hint = f"let {moment.user} come after '{needed}'"
    return Fault("EOP507", f"{message}, which {moment.user} does not come after", place, hint)


def _of_variable(name: Name, kind: str) -> Type | Fault:
    if not name.length:
        return Type(kind)
    if kind == "text":
        return INTEGER
    hint = "len(...) is for lists and texts"
    return Fault("EOP311", f"'{name.path}' is of type {kind}", name.place, hint)


def _part(name: Name, index: int) -> Place:
    """Where one of the words of a dotted name stands."""
    words = name.path.split(".")
    start = name.place.start + sum(len(word) + 1 for word in words[:index])
    return Place(start, start + len(words[index]))
