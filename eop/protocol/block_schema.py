"""The JSON Schema of the blocks of a protocol, for editors: what the markers take, and no more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eop.protocol.markers import FRONT, KINDS
from eop.protocol.patterns import PATTERNS, WORKER
from eop.protocol.shapes import fields_schema
from eop.protocol.signatures import FUNCTIONS, Signature

if TYPE_CHECKING:
    from collections.abc import Sequence


def block_schema() -> dict[str, Any]:
    """One schema for front matter, phases, gates and loops; the first key decides which it is.

    It says what a block may look like by itself. What a block means beside others (references,
    flow, budgets) only the checks can say.
    """
    kinds = {kind: fields_schema(fields) for kind, fields in KINDS.items()}
    kinds["phase"]["allOf"] = [*_patterns(), *_functions()]
    kinds["phase"]["oneOf"] = [{"required": ["pattern"]}, {"required": ["function"]}]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A block of a protocol (*.eop.md), or its front matter",
        "type": "object",
        "if": {"required": ["eop"]},
        "then": {"$ref": "#/$defs/front"},
        "else": {
            "oneOf": [{"required": [kind]} for kind in kinds],
            "allOf": [
                {"if": {"required": [kind]}, "then": {"$ref": f"#/$defs/{kind}"}} for kind in kinds
            ],
        },
        "$defs": {"front": fields_schema(FRONT), **kinds},
    }


def _patterns() -> list[dict[str, Any]]:
    """What a pattern asks of its phase: products, tools, and its roles where they are fixed."""
    agents = {"required": ["nodes", "tools"], "properties": {"with": False}}
    rules: list[dict[str, Any]] = [{"if": {"required": ["pattern"]}, "then": agents}]
    for name, pattern in PATTERNS.items():
        if pattern.roles is not None:
            roles = {
                "required": list(pattern.roles),
                "propertyNames": {"enum": list(pattern.names)},
            }
            rules.append(_when("pattern", name, {"nodes": roles}))
        if WORKER in pattern.names:
            rules.append(_when("pattern", name, {}, required=["workers"]))
    return rules


def _functions() -> list[dict[str, Any]]:
    """What a function asks of its phase: its arguments, and the outputs that it leaves."""
    return [
        _when("function", name, {"with": fields_schema(signature.arguments), **_leaves(signature)})
        for name, signature in FUNCTIONS.items()
    ]


def _leaves(signature: Signature) -> dict[str, Any]:
    left = {
        output.name: {"file": output.file, **({"schema": output.schema} if output.schema else {})}
        for output in signature.leaves
    }
    return {"outputs": {"const": left}}


def _when(
    key: str, value: str, properties: dict[str, Any], required: Sequence[str] = ()
) -> dict[str, Any]:
    return {
        "if": {"properties": {key: {"const": value}}, "required": [key]},
        "then": {"properties": properties, **({"required": [*required]} if required else {})},
    }
