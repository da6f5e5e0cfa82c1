"""Typed sections of a config: plain data checked against the fields of a dataclass."""

from __future__ import annotations

import math
from dataclasses import MISSING, fields, is_dataclass
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

_Section = TypeVar("_Section")
_LARGEST = 2**63 - 1


class KeyProblemError(ValueError):
    """A value that a config cannot have; ``key`` is its dotted name within the file."""

    def __init__(self, key: str, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.key = key
        self.hint = hint


def require(condition: bool, key: str, message: str) -> None:
    """Raise ``KeyProblemError`` for ``key`` unless ``condition`` holds."""
    if not condition:
        raise KeyProblemError(key, message)


def section(values: Any, cls: type[_Section], prefix: str = "") -> _Section:
    """``values`` as a ``cls``: every required key, no other, each of its field's type.

    ``prefix`` is put before the names of keys in errors, such as ``model.``.
    """
    hints = get_type_hints(cls)
    known = _known_keys(values, cls, prefix)
    return cls(**{key: _typed(value, hints[key], prefix + key) for key, value in known.items()})


def _known_keys(data: Any, cls: type, prefix: str) -> dict[str, Any]:
    """``data`` as a mapping that has every required key of ``cls`` and no other."""
    place = prefix.rstrip(".") or "top level"
    if not isinstance(data, dict):
        raise KeyProblemError(place, f"must be a mapping of keys, found {data!r}")
    known = {field.name: field for field in fields(cls)}
    for key in data:
        if key not in known:
            near = get_close_matches(str(key), known, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"known keys: {', '.join(known)}"
            raise KeyProblemError(f"{prefix}{key}", "unknown key", hint)
    for name, field in known.items():
        required = field.default is MISSING and field.default_factory is MISSING
        if name not in data and required:
            raise KeyProblemError(f"{prefix}{name}", "the key is missing", f"add '{name}:'")
    return data


def _typed(value: Any, kind: Any, key: str) -> Any:
    """``value`` as ``kind``; whole numbers pass for floats, nothing else is converted."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is UnionType:  # the one union that configs have is "something or nothing"
        (kind,) = (part for part in parts if part is not NoneType)
        return None if value is None else _typed(value, kind, key)
    if is_dataclass(kind):
        return section(value, kind, f"{key}.")  # type: ignore[arg-type]
    if origin is Literal:
        if value not in parts:
            raise KeyProblemError(key, f"must be one of {', '.join(parts)}, found {value!r}")
        return value
    if origin is tuple:
        return _typed_tuple(value, parts, key)
    whole = type(value) is int
    if type(value) is not kind and not (kind is float and whole):
        raise KeyProblemError(key, f"must be of type {kind.__name__}, found {value!r}")
    if (whole and abs(value) > _LARGEST) or (type(value) is float and not math.isfinite(value)):
        raise KeyProblemError(key, f"must be a finite number of usual size, found {value!r}")
    return float(value) if kind is float else value


def _typed_tuple(value: Any, parts: tuple[Any, ...], key: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise KeyProblemError(key, f"must be a list, found {value!r}")
    if parts[-1] is Ellipsis:
        return tuple(_typed(part, parts[0], key) for part in value)
    if len(value) != len(parts):
        raise KeyProblemError(key, f"must be a list of {len(parts)} numbers, found {value!r}")
    return tuple(_typed(part, want, key) for part, want in zip(value, parts, strict=True))
