"""A JSON Schema as an answer's form, in the dialects that products and their services take: pure.

They want an object at the root, and Claude Code knows no keyword after draft 7. OpenAI's strict
forms take only some keywords, and every field of an object must be required: what may be left out
is null there. Whether an answer conforms is judged by the schema itself (``eop.agents.outputs``),
so a form may be looser than its schema.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

# The field of an answer whose schema is no object.
_ONLY = "answer"
# Of drafts after the seventh, or about the schema itself.
_UNKNOWN = frozenset(
    {
        "$anchor", "$dynamicAnchor", "$dynamicRef", "$id", "$schema", "$vocabulary",
        "dependentRequired", "dependentSchemas", "maxContains", "minContains", "prefixItems",
        "unevaluatedItems", "unevaluatedProperties",
    }
)  # fmt: skip
_NAMED = frozenset({"$defs", "properties"})
_LISTED = frozenset({"allOf", "anyOf", "oneOf"})
_BELOW = frozenset({"additionalProperties", "else", "if", "items", "not", "then"})
_STRICT = frozenset(
    {
        "const", "description", "enum", "exclusiveMaximum", "exclusiveMinimum", "format",
        "maxItems", "maximum", "minItems", "minimum", "multipleOf", "pattern", "title", "type",
    }
)  # fmt: skip
_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
_NULL = {"type": "null"}


def form(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema in draft 7, with an object at its root: itself, or with it as its only field."""
    plain: dict[str, Any] = _draft7(schema)
    if plain.get("type") == "object":
        return plain
    shared = {"$defs": plain.pop("$defs")} if "$defs" in plain else {}
    return {**_object({_ONLY: plain}), **shared}


def strict_form(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """The form in OpenAI's strict subset; ``None`` for a schema that it cannot express."""
    try:
        return _strict(form(schema))
    except _BeyondStrictError:
        return None


def unpack(value: Any, schema: Mapping[str, Any]) -> Any:
    """The answer that lies in a form: out of its only field, without the nulls of absent fields."""
    if schema.get("type") != "object" and isinstance(value, dict) and value.keys() == {_ONLY}:
        value = value[_ONLY]
    return _without_nulls(value, schema)


class _BeyondStrictError(ValueError):
    pass


def _draft7(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return schema
    made = {key: value for key, value in schema.items() if key not in _UNKNOWN}
    for key in _NAMED & made.keys():
        made[key] = {name: _draft7(one) for name, one in made[key].items()}
    for key in _LISTED & made.keys():
        made[key] = [_draft7(one) for one in made[key]]
    for key in _BELOW & made.keys():
        made[key] = _draft7(made[key])
    return made


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(properties),
        "properties": properties,
    }


def _strict(schema: Mapping[str, Any]) -> dict[str, Any]:
    made = {key: value for key, value in schema.items() if key in _STRICT}
    if "$defs" in schema:
        made["$defs"] = {name: _strict(one) for name, one in schema["$defs"].items()}
    if "$ref" in schema:
        return {**made, "$ref": schema["$ref"]}
    choice = schema.get("anyOf") or schema.get("oneOf")
    if choice:
        return {**made, "anyOf": [_strict(one) for one in choice]}
    listed = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
    if "type" not in made and {type(one) for one in listed} <= _TYPES.keys():
        made["type"] = list(dict.fromkeys(_TYPES[type(one)] for one in listed))
    if not made.get("type"):
        raise _BeyondStrictError
    if "object" in made["type"]:
        made |= {**_object(_fields(schema)), "type": made["type"]}
    if "array" in made["type"]:
        made["items"] = _strict(schema.get("items", {}))
    return made


def _fields(schema: Mapping[str, Any]) -> dict[str, Any]:
    fields = schema.get("properties")
    if not fields:
        raise _BeyondStrictError
    made = {name: _strict(one) for name, one in fields.items()}
    for name in made.keys() - set(schema.get("required", ())):
        made[name] = {"anyOf": [made[name], _NULL]}
    return made


def _without_nulls(value: Any, schema: Mapping[str, Any]) -> Any:
    if isinstance(value, list):
        return [_without_nulls(one, schema.get("items", {})) for one in value]
    if not isinstance(value, dict):
        return value
    fields = schema.get("properties", {})
    absent = fields.keys() - set(schema.get("required", ()))
    return {
        key: _without_nulls(one, fields.get(key, {}))
        for key, one in value.items()
        if one is not None or key not in absent
    }
