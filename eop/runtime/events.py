"""Events: the only way in which a run changes. A table says what each type carries."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import orjson

from eop.core.canonical import canonical_json, digest
from eop.protocol.expressions import LARGEST, LONGEST_TEXT
from eop.runtime.node import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# What the first event of a trace names as its predecessor.
GENESIS = "0" * 64

END_REASONS = ("completed", "rejected", "failed", "budget_exhausted", "cancelled")

EVENT_SCHEMA = "event/1"


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
        """The six fields and the version of their form, as plain JSON data."""
        return {
            "schema": EVENT_SCHEMA,
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
        if type(value) is not dict:
            raise ValueError("not an event")
        version = value.get("schema")
        if version != EVENT_SCHEMA:
            raise ValueError(f"its schema is {version!r}, this version knows {EVENT_SCHEMA!r} only")
        if value.keys() != _KEYS:
            raise ValueError(f"an event has exactly the keys schema, {', '.join(_FIELDS)}")
        for name, kind in _FIELDS.items():
            if type(value[name]) is not kind:
                raise ValueError(f"'{name}' is not of type {kind.__name__}")
        event = object.__new__(cls)
        vars(event).update(value)  # what the constructor would do, at a third of its cost
        del vars(event)["schema"]
        return event

    @cached_property
    def problems(self) -> tuple[str, ...]:
        """Everything in which its data differs from what its type carries."""
        return tuple(problems(self.type, self.data))

    @cached_property
    def digest(self) -> str:
        """Hex sha256 of the canonical JSON of ``to_json``."""
        return digest(self.to_json())

    @property
    def is_canonical(self) -> bool:
        """Whether ``encode`` gives back the bytes that it was read from."""
        return self.digest == digest(self.to_json())


_FIELDS = {"seq": int, "type": str, "data": dict, "prev": str, "time": str, "host": str}
_KEYS = {"schema", *_FIELDS}
# Follows the digest among the sorted keys. No text can hold it: there, a quote is escaped.
_AFTER_DIGEST = b',"host":'
_DIGEST = re.compile(b',"digest":"([0-9a-f]{64})"$')
_DIGEST_BYTES = 76


def encode(event: Event) -> bytes:
    """An event's file: canonical JSON of its fields and of its own digest."""
    return _with_digest(canonical_json(event.to_json()), event.digest)


def decode(content: bytes) -> Event:
    """The inverse of ``encode``; ``ValueError`` when one byte differs from what was written.

    That other bytes with their own digest are an event too is seen by ``Event.is_canonical``.
    """
    end = content.rfind(_AFTER_DIGEST)
    start = max(0, end - _DIGEST_BYTES)
    own = _DIGEST.match(content[start:end]) if end > 0 else None
    fields = content[:start] + content[end:]
    found = sha256(fields).hexdigest()
    if own is None or own[1] != found.encode():
        raise ValueError(_fault(content))
    event = Event.from_json(orjson.loads(fields))
    wrong = tuple(problems(event.type, event.data))
    if wrong:
        raise ValueError("; ".join(wrong))
    # What the cached properties would find; their own way to it takes a lock each.
    vars(event).update(problems=wrong, digest=found)
    return event


def _fault(content: bytes) -> str:
    """What is wrong with bytes that do not have their digest."""
    try:
        value = orjson.loads(content)
        if isinstance(value, dict):
            value.pop("digest", None)
        Event.from_json(value)
    except ValueError as error:
        return str(error)
    return "it was edited: its content does not have its digest"


def _with_digest(fields: bytes, digest_: str) -> bytes:
    at = fields.rindex(_AFTER_DIGEST)
    return b'%b,"digest":"%b"%b' % (fields[:at], digest_.encode(), fields[at:])


@dataclass(frozen=True, eq=False)
class Check:
    """What a value must be: ``holds`` judges one, ``schema`` says the same in JSON Schema."""

    holds: Callable[[Any], bool]
    schema: Mapping[str, Any]


_NO_MORE: Mapping[str, Check] = {}


def _matching(pattern: str) -> Check:
    compiled = re.compile(pattern)

    def holds(value: Any) -> bool:
        return type(value) is str and compiled.fullmatch(value) is not None

    return Check(holds, {"type": "string", "pattern": pattern})


def _whole(least: int) -> Check:
    def holds(value: Any) -> bool:
        return type(value) is int and least <= value <= LARGEST

    return Check(holds, {"type": "integer", "minimum": least, "maximum": LARGEST})


def _is_amount(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= LARGEST


def _is_titles(value: Any) -> bool:
    return isinstance(value, dict) and all(
        _name.holds(k) and _name.holds(v) for k, v in value.items()
    )


def _is_values(value: Any) -> bool:
    return isinstance(value, dict) and all(
        _name.holds(key) and _is_value(one) for key, one in value.items()
    )


def _is_value(value: Any) -> bool:
    if type(value) is str:
        return len(value) <= LONGEST_TEXT
    return type(value) is bool or (type(value) in (int, float) and abs(value) <= LARGEST)


def _is_inside(value: Any) -> bool:
    return type(value) is str and value[:1] not in ("", "/") and ".." not in value.split("/")


def _one_of(*words: str) -> Check:
    return Check(lambda value: value in words, {"enum": list(words)})


def _optional(check: Check) -> Check:
    schema = {"anyOf": [{"type": "null"}, check.schema]}
    return Check(lambda value: value is None or check.holds(value), schema)


def _record(shape: Mapping[str, Check]) -> Check:
    return Check(lambda value: isinstance(value, dict) and _fits(value, shape), _object(shape))


def _object(shape: Mapping[str, Check], may: Mapping[str, Check] | None = None) -> dict[str, Any]:
    known = {**shape, **(may or {})}
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(shape),
        "properties": {key: check.schema for key, check in known.items()},
    }


def _list_of(check: Check) -> Check:
    def holds(value: Any) -> bool:
        return type(value) is list and (not value or all(map(check.holds, value)))

    return Check(holds, {"type": "array", "items": check.schema})


def _fits(
    data: Mapping[str, Any], shape: Mapping[str, Check], may: Mapping[str, Check] = _NO_MORE
) -> bool:
    # Every event that is read passes here: no generator, no copy.
    for key, check in shape.items():
        if key not in data or not check.holds(data[key]):
            return False
    if len(data) == len(shape):
        return True
    return all(key in may and may[key].holds(data[key]) for key in data if key not in shape)


def _mismatches(
    data: Mapping[str, Any], shape: Mapping[str, Check], may: Mapping[str, Check]
) -> list[str]:
    if _fits(data, shape, may):
        return []
    known = {**shape, **may}
    missing = [f"'{key}' is missing" for key in shape if key not in data]
    unknown = [f"unknown key '{key}'" for key in data if key not in known]
    wrong = [
        f"'{key}' may not be {data[key]!r}"
        for key, check in known.items()
        if key in data and not check.holds(data[key])
    ]
    return missing + unknown + wrong


_text = Check(lambda value: type(value) is str, {"type": "string"})
_name = Check(lambda value: type(value) is str and value != "", {"type": "string", "minLength": 1})
_sha256 = _matching("^[0-9a-f]{64}$")
_gate_digest = _matching("^[0-9a-f]{16}$")
# A path that stays below the root that it is relative to.
_inside = Check(_is_inside, {"type": "string", "pattern": r"^(?!/)(?!([^/]*/)*\.\.(/|$))[\s\S]+$"})
_count = _whole(0)
_turn = _whole(1)
_seconds = Check(_is_amount, {"type": "number", "minimum": 0, "maximum": LARGEST})
_titles = Check(
    _is_titles,
    {"type": "object", "propertyNames": _name.schema, "additionalProperties": _name.schema},
)
_VALUE = {
    "anyOf": [
        {"type": "boolean"},
        {"type": "number", "minimum": -LARGEST, "maximum": LARGEST},
        {"type": "string", "maxLength": LONGEST_TEXT},
    ]
}
_values = Check(
    _is_values,
    {"type": "object", "propertyNames": _name.schema, "additionalProperties": _VALUE},
)
# Units that an amount carries only where there is something to say: reserved, or measured.
OPTIONAL_UNITS = ("tokens", "micro_usd")


def _amount(actions: Check) -> Check:
    shape = {"actions": actions, "wall_s": _seconds}
    may = dict.fromkeys(OPTIONAL_UNITS, _count)

    def holds(value: Any) -> bool:
        return type(value) is dict and _fits(value, shape, may)

    return Check(holds, _object(shape, may))


_LEFT = _one_of(*(outcome.value for outcome in Outcome if outcome is not Outcome.SKIPPED))
_ARTIFACT = _record({"name": _name, "path": _inside, "sha256": _sha256, "size": _count})

SHAPES: dict[str, dict[str, Check]] = {
    "run_started": {
        "run": _name,
        "plan": _sha256,
        "config": _name,
        "snapshot": _name,
        "variables": _values,
    },
    "node_entered": {
        "node": _name,
        "attempt": _turn,
        "reserve": _amount(_count),
    },
    "node_left": {
        "node": _name,
        "attempt": _turn,
        "outcome": _LEFT,
        "reason": _text,
        "artifacts": _list_of(_ARTIFACT),
        "facts": _values,
        "usage": _amount(_optional(_count)),
    },
    "node_abandoned": {"node": _name, "attempt": _turn, "reason": _text},
    "node_skipped": {"node": _name, "reason": _text},
    "sent_back": {"node": _name},
    "branches_opened": {
        "iteration": _turn,
        "item": _name,
        "branches": _titles,
        "artifact": _sha256,
    },
    "gate_requested": {"gate": _name, "digest": _gate_digest},
    "gate_approved": {"gate": _name, "digest": _gate_digest, "by": _name, "reason": _text},
    "gate_rejected": {"gate": _name, "digest": _gate_digest, "by": _name, "reason": _text},
    "gate_skipped": {"gate": _name, "reason": _text},
    "loop_continued": {"iteration": _turn},
    "run_paused": {"by": _name, "reason": _text},
    "run_resumed": {"by": _name, "reason": _text},
    "run_cancelled": {"by": _name, "reason": _text},
    "plan_changed": {"from": _sha256, "to": _sha256, "by": _name, "reason": _text},
    "run_ended": {"reason": _one_of(*END_REASONS)},
}

# What an event may carry besides. A run that names signers takes signed answers only; what an
# earlier version began says nothing of its experiment.
OPTIONAL: dict[str, dict[str, Check]] = {
    "run_started": {"signers": _sha256, "experiment": _sha256},
    "gate_approved": {"signature": _name},
    "gate_rejected": {"signature": _name},
}


def problems(kind: str, data: Mapping[str, Any]) -> list[str]:
    """Everything in which ``data`` differs from what an event of type ``kind`` carries."""
    shape = SHAPES.get(kind)
    if shape is None:
        return [f"unknown event type '{kind}'"]
    return _mismatches(data, shape, OPTIONAL.get(kind, {}))


def event_schema() -> dict[str, Any]:
    """The JSON Schema of an event's file: ``SHAPES`` and ``OPTIONAL`` for programs of others."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Event of a run",
        "description": (
            "An event of a trace: a file of its own, or a line of a pack. `prev` is the digest of "
            "the event before, `digest` the sha256 of the canonical JSON of all other keys. `time` "
            "and `host` are for people."
        ),
        "oneOf": [{"$ref": f"#/$defs/{kind}"} for kind in SHAPES],
        "$defs": {kind: _event_of(kind) for kind in SHAPES},
    }


def _event_of(kind: str) -> dict[str, Any]:
    properties = {
        "schema": {"const": EVENT_SCHEMA},
        "seq": _turn.schema,
        "type": {"const": kind},
        "data": _object(SHAPES[kind], OPTIONAL.get(kind)),
        "prev": _sha256.schema,
        "digest": _sha256.schema,
        "time": _text.schema,
        "host": _text.schema,
    }
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(properties),
        "properties": properties,
    }
