"""The markers of the language: how each is read and how it is held."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from eop.core.errors import did_you_mean
from eop.protocol.expressions import BUILT_INS, TYPES, WORDS, is_of
from eop.protocol.model import ALL, ANY, OTHER
from eop.protocol.patterns import PATTERNS
from eop.protocol.products import TOOLS
from eop.protocol.shapes import (
    SLUG,
    STEP_NAME,
    VERSION,
    WORD,
    Field,
    boolean,
    choice,
    described,
    dollars,
    duration,
    fields_schema,
    file_name,
    integer,
    listing,
    memory,
    mismatch,
    name,
    record,
    table,
    text,
)
from eop.protocol.signatures import CHECKS, FUNCTIONS
from eop.protocol.written import expression
from eop.protocol.yaml_nodes import Listing, Node, Scalar
from eop.protocol.yaml_nodes import Mapping as YamlMapping

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eop.protocol.diagnostics import Report

LANGUAGE = 1
SEVERITIES = ("critical", "major", "minor", "info")
CONTEXTS = ("body", "full")
MOST = 99
MOST_TURNS = 999
MOST_WORKERS = 20
MOST_CPUS = 1024
# Of one machine: the processes of a training talk over its loopback.
MOST_GPUS = 8

_WORD_RULE = "lower-case letters, digits and '_', first a letter, last no '_'"
_STEP_RULE = f"{_WORD_RULE}; not like a branch (p01_...) or a revision (..._r2)"
_SLUG_RULE = "lower-case letters, digits and '-', first a letter, last no '-'"
_step = name(STEP_NAME, "step name", _STEP_RULE)
_word = name(WORD, "name", _WORD_RULE)
_slug = name(SLUG, "name", _SLUG_RULE)
_SPENT: Mapping[str, Field] = MappingProxyType(
    {
        "actions": Field(integer(1, 1_000_000)),
        "tokens": Field(integer(1, 10**12)),
        "usd": Field(dollars),
        "wall": Field(duration),
    }
)
_budget = record({**_SPENT, "attempts": Field(integer(1, 9))}, owner="budget")
_run_budget = record(
    {unit: Field(field.shape, unit in ("actions", "wall")) for unit, field in _SPENT.items()},
    owner="the run's budget",
)


_RESOURCES = record(
    {
        "cpus": Field(integer(1, MOST_CPUS)),
        "gpus": Field(integer(1, MOST_GPUS)),
        "ram": Field(memory),
    },
    owner="resources",
)


@described({"const": LANGUAGE})
def _language(node: Node, report: Report) -> int | None:
    value = node.value if isinstance(node, Scalar) else None
    if type(value) is int and value == LANGUAGE:
        return LANGUAGE
    hint = f"this release reads 'eop: {LANGUAGE}'"
    report.error("EOP306", "the language version is not supported", node.span, hint)
    return None


@described({"type": ["boolean", "number", "string"]})
def _anything(node: Node, report: Report) -> object | None:
    if isinstance(node, Scalar) and node.value is not None:
        return node.value
    mismatch(node, "a value", report)
    return None


_VARIABLE = record(
    {
        "type": Field(choice(TYPES, "type"), required=True),
        "default": Field(_anything, required=True),
    },
    owner="a variable",
)


@described(_VARIABLE.schema)
def _variable(node: Node, report: Report) -> dict[str, object] | None:
    if not isinstance(node, YamlMapping):
        mismatch(node, "a mapping", report, "write {type: integer, default: 2}")
        return None
    found: dict[str, object] | None = _VARIABLE(node, report)
    if found is None or set(found) != {"type", "default"}:
        return None
    kind, default = str(found["type"]), found["default"]
    if not is_of(default, kind):
        message = f"the default '{default}' is not of type {kind}"
        report.error("EOP308", message, node.at("default"), "change the type or the default")
        return None
    return found


@described({**_word.schema, "not": {"enum": [*BUILT_INS, *WORDS]}})
def _variable_name(node: Node, report: Report) -> str | None:
    found: str | None = _word(node, report)
    if found in (*BUILT_INS, *WORDS):
        message = f"'{found}' has a meaning of its own in expressions"
        report.error("EOP304", message, node.span, "give the variable another name")
        return None
    return found


_FAN_OUT = record(
    {
        "item": Field(_word, required=True),
        "in": Field(_word, required=True),
        "max": Field(integer(1, MOST), required=True),
    },
    owner="for_each",
)


@described({"oneOf": [_word.schema, _FAN_OUT.schema]})
def _for_each(node: Node, report: Report) -> Any:
    return (_FAN_OUT if isinstance(node, YamlMapping) else _word)(node, report)


def _join_fields(fewest: int) -> dict[str, Field]:
    return {
        "of": Field(_step, required=True),
        "wait": Field(choice((ALL, ANY), "wait")),
        "at_least": Field(integer(fewest, MOST)),
    }


@described(
    {
        **fields_schema(_join_fields(0)),
        "if": {"properties": {"wait": {"const": ANY}}, "required": ["wait"]},
        "then": {"properties": {"at_least": {"minimum": 1}}},
    }
)
def _join(node: Node, report: Report) -> dict[str, object] | None:
    """A join that waits for any branch needs one at least: 0 would cut off every branch."""
    wait = node.values.get("wait") if isinstance(node, YamlMapping) else None
    fewest = 1 if isinstance(wait, Scalar) and wait.value == ANY else 0
    found: dict[str, object] | None = record(_join_fields(fewest), owner="join")(node, report)
    return found


@described({"const": True})
def _end(node: Node, report: Report) -> bool | None:
    value = boolean(node, report)
    if value is False:
        hint = "write {goto: step, max: 3} to go back instead"
        report.error("EOP302", "'end' can only be true", node.span, hint)
        return None
    return value


_BACK = {"goto": Field(_step, required=True), "max": Field(integer(1, MOST), required=True)}
_END = {"end": Field(_end, required=True)}


@described({"type": "object", "oneOf": [fields_schema(_BACK), fields_schema(_END)]})
def _on_reject(node: Node, report: Report) -> dict[str, object] | None:
    if not isinstance(node, YamlMapping):
        mismatch(node, "a mapping", report, "write {goto: step, max: 3} or {end: true}")
        return None
    either = {key: Field(field.shape) for key, field in {**_BACK, **_END}.items()}
    fields = {**either, **(_END if "end" in node.values else _BACK)}
    found: dict[str, object] | None = record(fields, owner="on_reject")(node, report)
    for key in ("goto", "max"):
        if "end" in node.values and key in node.values:
            message = f"'{key}' contradicts 'end'"
            report.error("EOP414", message, node.key(key), "a rejection goes back or ends the run")
    return found


@described({"enum": list(PATTERNS)})
def _pattern(node: Node, report: Report) -> str | None:
    value = text(node, report)
    if value is None or value in PATTERNS:
        return value
    hint = did_you_mean(value, PATTERNS) or f"known: {', '.join(PATTERNS)}"
    report.error("EOP206", f"unknown pattern '{value}'", node.span, hint)
    return None


_SEVERAL = listing(text)


@described({"oneOf": [text.schema, _SEVERAL.schema]})
def _products(node: Node, report: Report) -> tuple[str, ...] | None:
    """One product, or those that take turns."""
    if isinstance(node, Listing):
        several: tuple[str, ...] | None = _SEVERAL(node, report)
        return several
    product = text(node, report)
    return None if product is None else (product,)


_NODE = record(
    {"product": Field(_products, required=True), "budget": Field(_budget)}, owner="a node"
)


@described({"oneOf": [*_products.schema["oneOf"], _NODE.schema]})
def _node(node: Node, report: Report) -> dict[str, Any] | None:
    """A node: its product alone, or with a budget of its own."""
    if not isinstance(node, YamlMapping):
        products = _products(node, report)
        return None if products is None else {"product": products}
    found: dict[str, Any] | None = _NODE(node, report)
    return found if found and "product" in found else None


_WORKERS = record(
    {
        "max": Field(integer(1, MOST_WORKERS), required=True),
        "concurrency": Field(integer(1, MOST_WORKERS)),
        "at_least": Field(integer(1, MOST_WORKERS)),
    },
    owner="workers",
)


@described({})
def _with(node: Node, report: Report) -> Node:
    """``with`` is read once its function is known."""
    return node


_OUTPUT = record(
    {
        "file": Field(file_name, required=True),
        "schema": Field(_slug),
        "patch": Field(boolean),
    },
    owner="an output",
)

FRONT: Mapping[str, Field] = MappingProxyType(
    {
        "eop": Field(_language, required=True),
        "name": Field(_slug, required=True),
        "version": Field(name(VERSION, "version", "write 0.1.0"), required=True),
        "target": Field(_slug, required=True),
        "variables": Field(table(_variable_name, _variable)),
        "context": Field(choice(CONTEXTS, "context")),
        "budget": Field(
            _run_budget,
            required=True,
        ),
    }
)

PHASE: Mapping[str, Field] = MappingProxyType(
    {
        "phase": Field(_step, required=True),
        "needs": Field(listing(_step)),
        "for_each": Field(_for_each),
        "on_branch": Field(listing(choice(("completed", "failed", "skipped"), "branch outcome"))),
        "join": Field(_join),
        "pattern": Field(_pattern),
        "nodes": Field(table(_word, _node)),
        "workers": Field(_WORKERS),
        "review": Field(
            record(
                {
                    "until": Field(choice(SEVERITIES, "severity")),
                    "rounds": Field(integer(1, 9)),
                    "vendor": Field(choice((ANY, OTHER), "vendor")),
                },
                owner="review",
            )
        ),
        "check": Field(choice(CHECKS, "check", "EOP205")),
        "function": Field(choice(FUNCTIONS, "function", "EOP205")),
        "with": Field(_with),
        "tools": Field(listing(choice(TOOLS, "tool"))),
        "budget": Field(_budget),
        "resources": Field(_RESOURCES),
        "outputs": Field(table(_word, _OUTPUT), required=True),
        "when": Field(expression),
        "optional": Field(boolean),
        "context": Field(choice(CONTEXTS, "context")),
        "goto": Field(
            record(
                {
                    "to": Field(_step, required=True),
                    "when": Field(expression, required=True),
                    "max": Field(integer(1, MOST), required=True),
                },
                owner="goto",
            )
        ),
    }
)

GATE: Mapping[str, Field] = MappingProxyType(
    {
        "gate": Field(_step, required=True),
        "after": Field(listing(_step), required=True),
        "shows": Field(listing(_word), required=True),
        "on_reject": Field(_on_reject, required=True),
    }
)

LOOP: Mapping[str, Field] = MappingProxyType(
    {
        "loop": Field(_step, required=True),
        "after": Field(listing(_step), required=True),
        "goto": Field(_step, required=True),
        "max": Field(integer(1, MOST_TURNS), required=True),
        "while": Field(expression),
        "until": Field(expression),
    }
)

KINDS: Mapping[str, Mapping[str, Field]] = MappingProxyType(
    {"phase": PHASE, "gate": GATE, "loop": LOOP}
)

# A fault in one of these leaves the step's place in the graph unknown.
EDGES = frozenset({"needs", "after", "join", "goto", "for_each"})
