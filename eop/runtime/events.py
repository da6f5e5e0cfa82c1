"""Events: the only way in which a run changes. A table says what each type carries."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from eop.core.canonical import digest
from eop.runtime.node import Outcome

# What the first event of a trace names as its predecessor.
GENESIS = "0" * 64

END_REASONS = ("completed", "rejected", "failed", "budget_exhausted")

_SHA256 = re.compile(r"[0-9a-f]{64}")
_GATE_DIGEST = re.compile(r"[0-9a-f]{16}")
_Check = Callable[[Any], bool]


@dataclass(frozen=True)
class Event:
    """One entry of the trace.

    ``prev`` is the digest of the event before (``GENESIS`` for the first). ``time`` (ISO 8601,
    UTC) and ``host`` are for people: no decision reads them.
    """

    seq: int
    type: str
    data: Mapping[str, Any]
    prev: str
    time: str
    host: str

    def to_json(self) -> dict[str, Any]:
        """The six fields as plain JSON data."""
        return {
            "seq": self.seq,
            "type": self.type,
            "data": dict(self.data),
            "prev": self.prev,
            "time": self.time,
            "host": self.host,
        }

    @classmethod
    def from_json(cls, value: Any) -> Event:
        """The inverse of ``to_json``; ``ValueError`` says what is wrong with any other value."""
        names = {"seq": int, "type": str, "data": dict, "prev": str, "time": str, "host": str}
        if not isinstance(value, dict) or set(value) != set(names):
            raise ValueError(f"an event has exactly the keys {', '.join(names)}")
        for name, kind in names.items():
            if not isinstance(value[name], kind) or isinstance(value[name], bool):
                raise ValueError(f"'{name}' is not of type {kind.__name__}")
        return cls(**value)

    @cached_property
    def problems(self) -> tuple[str, ...]:
        """Everything in which its data differs from what its type carries."""
        return tuple(problems(self.type, self.data))

    @cached_property
    def digest(self) -> str:
        """Hex sha256 of the canonical JSON of the six fields."""
        return digest(self.to_json())


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _name(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _sha256(value: Any) -> bool:
    return isinstance(value, str) and _SHA256.fullmatch(value) is not None


def _gate_digest(value: Any) -> bool:
    return isinstance(value, str) and _GATE_DIGEST.fullmatch(value) is not None


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _turn(value: Any) -> bool:
    return _count(value) and value >= 1


def _seconds(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and math.isfinite(value) and value >= 0


def _titles(value: Any) -> bool:
    return isinstance(value, dict) and all(_name(k) and _name(v) for k, v in value.items())


def _one_of(*words: str) -> _Check:
    return lambda value: value in words


def _optional(check: _Check) -> _Check:
    return lambda value: value is None or check(value)


def _record(shape: Mapping[str, _Check]) -> _Check:
    return lambda value: isinstance(value, dict) and _fits(value, shape)


def _list_of(check: _Check) -> _Check:
    return lambda value: isinstance(value, list) and all(check(item) for item in value)


def _inside(value: Any) -> bool:
    """A path that stays below the root that it is relative to."""
    return _name(value) and not value.startswith("/") and ".." not in value.split("/")


def _fits(data: Mapping[str, Any], shape: Mapping[str, _Check]) -> bool:
    if data.keys() != shape.keys():
        return False
    for key, check in shape.items():  # noqa: SIM110 - every event of a fold passes here
        if not check(data[key]):
            return False
    return True


def _mismatches(
    data: Mapping[str, Any], shape: Mapping[str, _Check], may: Mapping[str, _Check] | None = None
) -> list[str]:
    if _fits(data, shape):
        return []
    known = {**shape, **(may or {})}
    missing = [f"'{key}' is missing" for key in shape if key not in data]
    unknown = [f"unknown key '{key}'" for key in data if key not in known]
    wrong = [
        f"'{key}' may not be {data[key]!r}"
        for key, check in known.items()
        if key in data and not check(data[key])
    ]
    return missing + unknown + wrong


_LEFT = _one_of(*(outcome.value for outcome in Outcome if outcome is not Outcome.SKIPPED))
_ARTIFACT = _record({"name": _name, "path": _inside, "sha256": _sha256, "size": _count})

SHAPES: dict[str, dict[str, _Check]] = {
    "run_started": {"run": _name, "plan": _sha256, "config": _name, "snapshot": _name},
    "node_entered": {
        "node": _name,
        "attempt": _turn,
        "reserve": _record({"actions": _count, "wall_s": _seconds}),
    },
    "node_left": {
        "node": _name,
        "attempt": _turn,
        "outcome": _LEFT,
        "reason": _text,
        "artifacts": _list_of(_ARTIFACT),
        "usage": _record({"actions": _optional(_count), "wall_s": _seconds}),
    },
    "node_abandoned": {"node": _name, "attempt": _turn, "reason": _text},
    "node_skipped": {"node": _name, "reason": _text},
    "branches_opened": {
        "iteration": _turn,
        "item": _name,
        "branches": _titles,
        "artifact": _sha256,
    },
    "gate_requested": {"gate": _name, "digest": _gate_digest},
    "gate_approved": {"gate": _name, "digest": _gate_digest, "by": _name, "reason": _text},
    "gate_rejected": {"gate": _name, "digest": _gate_digest, "by": _name, "reason": _text},
    "loop_continued": {"iteration": _turn},
    "run_ended": {"reason": _one_of(*END_REASONS)},
}

# What an event may carry besides. A run that names signers takes signed answers only.
OPTIONAL: dict[str, dict[str, _Check]] = {
    "run_started": {"signers": _sha256},
    "gate_approved": {"signature": _name},
    "gate_rejected": {"signature": _name},
}


def problems(kind: str, data: Mapping[str, Any]) -> list[str]:
    """Everything in which ``data`` differs from what an event of type ``kind`` carries."""
    shape = SHAPES.get(kind)
    if shape is None:
        return [f"unknown event type '{kind}'"]
    return _mismatches(data, shape, OPTIONAL.get(kind))
