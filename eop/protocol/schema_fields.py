"""What a JSON Schema says of one field: the static type of ``artifact.field`` in an expression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eop.core.errors import did_you_mean
from eop.protocol.expression_types import BOOLEAN, INTEGER, NUMBER, TEXT, Type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_KINDS = {"integer": INTEGER, "number": NUMBER, "string": TEXT, "boolean": BOOLEAN}
_MOST_REFERENCES = 8


class FieldError(ValueError):
    """Why a field has no type; ``index`` counts the names of the path, ``hint`` says more."""

    def __init__(self, message: str, index: int, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.index = index
        self.hint = hint


def field_type(schema: Mapping[str, Any], fields: Sequence[str], *, length: bool) -> Type:
    """The type of the field at ``fields``, with ``length`` that of how long it is.

    Raises ``FieldError`` unless the schema declares every field on the way, requires it, and
    gives it one simple type; follows ``properties``, ``required``, ``enum``, ``const`` and
    references within the schema.
    """
    node = _followed(schema, schema, 0)
    for index, name in enumerate(fields):
        known = node.get("properties", {})
        if name not in known:
            hint = did_you_mean(name, known) or _known(known)
            raise FieldError(f"the schema declares no field '{name}'", index, hint)
        if name not in node.get("required", ()):
            hint = did_you_mean(name, [n for n in node.get("required", ()) if n != name])
            message = f"the field '{name}' may be missing"
            raise FieldError(message, index, hint or "let the schema require it")
        node = _followed(schema, known[name], index)
    last = len(fields) - 1
    return _length(node, last) if length else _simple(node, last)


def _followed(schema: Mapping[str, Any], node: Any, index: int) -> dict[str, Any]:
    """``node``, or what it refers to."""
    for _ in range(_MOST_REFERENCES):
        if not isinstance(node, dict):
            break
        if "$ref" not in node:
            return node
        node = _referred(schema, node["$ref"], index)
    raise FieldError("the schema does not say what it is", index, "give it a type")


def _referred(schema: Mapping[str, Any], reference: str, index: int) -> Any:
    node: Any = schema
    steps = reference.split("/")
    for step in steps[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        node = node.get(name) if isinstance(node, dict) else None
    if steps[0] != "#" or node is None:
        hint = "only references within the schema are followed"
        raise FieldError(f"the schema's reference '{reference}' leads nowhere", index, hint)
    return node


def _length(node: Mapping[str, Any], index: int) -> Type:
    if node.get("type") not in ("array", "string"):
        raise FieldError("it has no length", index, "len(...) is for lists and texts")
    return INTEGER


def _simple(node: Mapping[str, Any], index: int) -> Type:
    words = [node["const"]] if "const" in node else node.get("enum")
    if words and all(isinstance(word, str) for word in words):
        return Type("text", tuple(words))
    kind = node.get("type")
    if isinstance(kind, str) and kind in _KINDS:
        return _KINDS[kind]
    if kind == "object":
        raise FieldError("it holds fields", index, _known(node.get("properties", {})))
    if kind == "array":
        raise FieldError("it is a list", index, "only its length can be asked for: len(...)")
    if isinstance(kind, list):
        raise FieldError(f"it may be any of {', '.join(kind)}", index, "give it one type")
    raise FieldError("the schema does not say of what type it is", index, "give it a type")


def _known(names: Mapping[str, Any]) -> str | None:
    return f"known: {', '.join(names)}" if names else None
