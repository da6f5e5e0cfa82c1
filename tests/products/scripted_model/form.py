"""An answer in the form that a product asks for, as a model that is held to the form gives it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def fit(value: Any, form: Mapping[str, Any]) -> Any:
    """``value`` in the form: a field that must be there and has nothing to say is null."""
    if "anyOf" in form:
        if value is None:
            return None
        return fit(value, next(one for one in form["anyOf"] if one.get("type") != "null"))
    fields = form.get("properties", {})
    if form.get("type") == "object" and not isinstance(value, dict):
        (only,) = fields
        return {only: fit(value, fields[only])}
    if isinstance(value, dict):
        wanted = [key for key in fields if key in value or key in form.get("required", ())]
        return {key: fit(value.get(key), fields[key]) for key in wanted}
    if isinstance(value, list):
        return [fit(one, form["items"]) for one in value]
    return value
