"""The subset of JSON Schema to which OpenAI's strict answers are held.

The real service refuses a request whose schema is outside of it; a server that took any schema
would let through what no user can run.
"""

from __future__ import annotations

from typing import Any

_KEYWORDS = frozenset(
    {
        "$defs", "$ref", "additionalProperties", "anyOf", "const", "description", "enum",
        "exclusiveMaximum", "exclusiveMinimum", "format", "items", "maxItems", "maximum",
        "minItems", "minimum", "multipleOf", "pattern", "properties", "required", "title", "type",
    }
)  # fmt: skip


def require(schema: dict[str, Any], name: str) -> None:
    """``ValueError`` with the service's kind of message when ``schema`` is refused."""
    if schema.get("type") != "object":
        raise ValueError(
            f"Invalid schema for response_format '{name}': schema must be a JSON Schema of "
            f"'type: \"object\"', got 'type: \"{schema.get('type')}\"'."
        )
    fault = _fault(schema, ())
    if fault is not None:
        raise ValueError(f"Invalid schema for response_format '{name}': {fault}")


def _fault(schema: dict[str, Any], path: tuple[str, ...]) -> str | None:
    unknown = sorted(schema.keys() - _KEYWORDS)
    if unknown:
        return f"In context={path}, '{unknown[0]}' is not permitted."
    properties = schema.get("properties", {})
    if properties or "object" in _types(schema):
        if schema.get("additionalProperties") is not False:
            return f"In context={path}, 'additionalProperties' is required to be false."
        missing = sorted(properties.keys() - set(schema.get("required", [])))
        if missing:
            return f"In context={path}, 'required' must include every key. Missing '{missing[0]}'."
    below = [((*path, "properties", key), value) for key, value in properties.items()]
    below += [((*path, "items"), schema["items"])] if "items" in schema else []
    below += [((*path, "anyOf", str(n)), one) for n, one in enumerate(schema.get("anyOf", []))]
    return next((found for way, one in below if (found := _fault(one, way))), None)


def _types(schema: dict[str, Any]) -> list[str]:
    kind = schema.get("type", [])
    return kind if isinstance(kind, list) else [kind]
