"""JSON Schema checks whose messages name the key and the nearest known word."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eop.core.errors import did_you_mean

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError


def problems(value: Any, schema: dict[str, Any]) -> list[str]:
    """Everything that is wrong with ``value``, one readable line each; empty when it conforms."""
    # Loaded when there is something to check: a job that checks nothing starts 0.1 s sooner.
    from jsonschema import Draft202012Validator

    errors = sorted(
        Draft202012Validator(schema).iter_errors(value),
        key=lambda error: list(map(str, error.path)),
    )
    return [line for error in errors for line in _lines(error)]


def _lines(error: ValidationError) -> list[str]:
    place = ".".join(str(part) for part in error.path) or "top level"
    if error.validator != "additionalProperties" or not isinstance(error.instance, dict):
        return [f"{place}: {error.message}"]
    known = error.schema.get("properties", {}) if isinstance(error.schema, dict) else {}
    lines = []
    for key in error.instance:
        if key not in known:
            hint = did_you_mean(str(key), known)
            lines.append(f"{place}: unknown key '{key}'" + (f" ({hint})" if hint else ""))
    return lines
