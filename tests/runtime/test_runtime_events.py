"""What an event carries, said once: the checks, the published schema and a run's files agree."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from research_run import Run, agent, research

from eop.core.canonical import canonical_json
from eop.core.errors import EopError
from eop.protocol.model import Back, Gate, OnReject
from eop.runtime.events import SHAPES, Check, Event, decode, encode, event_schema, problems
from eop.runtime.node import Outcome
from eop.runtime.trace import Trace
from eop.runtime.verify import verify

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEMA = Path(__file__).parents[2] / "config" / "schemas" / "event.schema.yaml"
CHECKS = {check: f"{kind}-{key}" for kind, shape in SHAPES.items() for key, check in shape.items()}
VALIDATORS = {check: Draft202012Validator(check.schema) for check in CHECKS}
# Numbers such as 1.0, whole and yet no integer of ours, are left out: the schema takes them.
NUMBERS = st.integers(-2, 3) | st.floats().filter(lambda value: not value.is_integer())
TEXTS = st.sampled_from(
    ["", "a", "a/b", "../a", "a/..", "/a", "0" * 16, "0" * 64, "completed", "A" * 64]
)
LEAVES = st.none() | st.booleans() | NUMBERS | TEXTS
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2)
)


def near(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that often fit ``schema``, and now and then do not."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"]) | VALUES
    if "anyOf" in schema:
        return st.one_of(*map(near, schema["anyOf"]), VALUES)
    if schema.get("type") == "null":
        return st.none()
    if schema.get("type") == "array":
        return st.lists(near(schema["items"]), max_size=2) | VALUES
    if schema.get("type") == "object" and "properties" in schema:
        parts = {key: near(value) for key, value in schema["properties"].items()}
        return st.fixed_dictionaries(parts) | VALUES
    return VALUES


@pytest.mark.parametrize("check", CHECKS, ids=CHECKS.get)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_check_and_its_schema_say_the_same(check: Check, data: st.DataObject) -> None:
    value = data.draw(near(dict(check.schema)))
    try:
        written = json.loads(canonical_json(value))
    except ValueError:
        assume(False)
    assert check.holds(value) == VALIDATORS[check].is_valid(written)


def test_the_published_schema_is_that_of_the_checks() -> None:
    """When events change: ``make event-schema`` writes it anew."""
    assert yaml.safe_load(SCHEMA.read_text()) == event_schema()


def a_run_with_every_event(root: Path) -> Run:
    run = Run(root)
    run.do("it01_investigate")
    run.touch("rejected", "again")
    run.do("it01_investigate_r2")
    run.touch()
    run.do("it01_propose_r2")
    run.touch()
    run.enter("it01_p01_implement_r2")
    run.do("it01_p01_implement_r2")
    run.do("it01_p01_train_r2", Outcome.FAILED)
    run.do("it01_p01_train_r2")
    run.do("it01_p01_analyze_r2")
    run.do("it01_p02_implement_r2", Outcome.FAILED)
    run.enter("it01_p02_train_r2")
    run.do("it01_p02_analyze_r2")
    run.do("it01_promote_r2")
    run.touch()
    run = run.migrate(research(version="2"))
    run.trace.append("run_paused", {"by": "a", "reason": "wait"})
    run.trace.append("run_resumed", {"by": "a", "reason": ""})
    run.do("it02_propose")
    run.touch("rejected")
    run.do("it02_propose_r2")
    run.touch("rejected")
    run.do("it02_propose_r3")
    run.trace.append("run_cancelled", {"by": "a", "reason": "enough"})
    run.advance()
    return run


def a_run_that_decides(root: Path) -> Run:
    """A phase sends back once; then a guard leaves a gate nothing to ask."""
    phases = (
        agent("one", 1),
        agent("two", 2, needs=("one",), back=Back("one", "true", 1)),
        agent("three", 3, needs=("two",), when="false"),
    )
    gates = (Gate("ask", 4, ("three",), ("three_text",), OnReject()),)
    run = Run(root, research(phases=phases, gates=gates, loop=None))
    for revision in ("", "_r2"):
        run.do(f"it01_one{revision}")
        run.do(f"it01_two{revision}")
        run.advance()
    run.enter("it01_three_r2")
    run.advance()
    return run


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> tuple[Event, ...]:
    runs = (a_run_with_every_event, a_run_that_decides)
    return tuple(e for run in runs for e in run(tmp_path_factory.mktemp("run")).trace.events())


def test_every_file_of_a_run_conforms(events: tuple[Event, ...]) -> None:
    validator = Draft202012Validator(event_schema())
    assert {event.type for event in events} == set(SHAPES)
    for event in events:
        assert list(validator.iter_errors(json.loads(encode(event)))) == []


def spoilt(event: Event) -> Iterator[dict[str, Any]]:
    """An event's data without a key, with one too many, and with a value that is no value."""
    for key in event.data:
        yield {k: v for k, v in event.data.items() if k != key}
        yield {**event.data, key: object}
    yield {**event.data, "note": 1}


def test_what_an_event_does_not_carry_is_named(events: tuple[Event, ...]) -> None:
    for event in events:
        assert problems(event.type, event.data) == []
        for data in spoilt(event):
            assert problems(event.type, data)
    assert problems("run_praised", {}) == ["unknown event type 'run_praised'"]


def test_another_version_is_refused(events: tuple[Event, ...]) -> None:
    value = json.loads(encode(events[0]))
    for version in ("event/2", None):
        with pytest.raises(
            ValueError, match=r"its schema is .*, this version knows 'event/1' only"
        ):
            decode(canonical_json({**value, "schema": version}))
    del value["schema"]
    with pytest.raises(ValueError, match="its schema is None"):
        decode(canonical_json(value))


def test_text_that_looks_like_the_end_of_an_event_is_text(events: tuple[Event, ...]) -> None:
    for text in (',"host":', '","host":"', '"digest":"', "\\"):
        data = {"node": "it01_a", "attempt": 1, "reason": text}
        event = Event(1, "node_abandoned", data, "0" * 64, "t", text)
        assert decode(encode(event)) == event
        assert decode(encode(event)).digest == event.digest == replace(event).digest


@given(wall_s=st.floats(0, 1e18))
def test_a_float_comes_back_however_it_is_written(wall_s: float) -> None:
    usage = {"actions": None, "wall_s": wall_s}
    data = {"node": "it01_a", "attempt": 1, "outcome": "failed", "reason": "", "artifacts": []}
    event = Event(2, "node_left", {**data, "facts": {}, "usage": usage}, "0" * 64, "t", "h")
    assert decode(encode(event)) == event


@pytest.mark.parametrize(
    ("was", "now"),
    [
        (b'"attempt":1', b'"attempt": 1'),
        (b'"attempt":1', b'"attempt":2,"attempt":1'),
        (b'"node_entered"', b'"node_\\u0065ntered"'),
    ],
)
def test_json_that_is_not_canonical_is_found_though_it_has_its_digest(
    tmp_path: Path, was: bytes, now: bytes
) -> None:
    """Such an event has two forms: packing it would change its bytes, and so the chain."""
    run = Run(tmp_path)
    run.enter("it01_investigate")
    event = run.trace.events()[1]
    fields = canonical_json(event.to_json()).replace(was, now)
    own = b',"digest":"%b"' % sha256(fields).hexdigest().encode()
    at = fields.rindex(b',"host":')
    path = run.trace.directory / "00000002.json"
    path.unlink()
    path.write_bytes(fields[:at] + own + fields[at:])
    assert Trace(run.trace.directory, run.plan).events()[1] == event
    finding = "event 2: it was written by another program: its JSON is not canonical"
    assert finding in verify(tmp_path, run.name)


def test_what_is_not_canonical_is_not_packed(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.trace.append("run_cancelled", {"by": "a", "reason": ""})
    run.advance()
    assert run.trace.state().ended == "cancelled"
    vars(run.trace.events()[1])["digest"] = "1" * 64
    with pytest.raises(EopError, match="not canonical"):
        run.trace.compact()
    assert not list(run.trace.directory.glob("*.jsonl"))


def test_what_is_no_event_at_all_says_so() -> None:
    for content in (b"", b"{}", b"[1]", b'{"host":1}', b"\xff", b'x,"host":"'):
        with pytest.raises(ValueError, match=r".+"):
            decode(content)
