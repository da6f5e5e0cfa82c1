"""Answers in three protocols, in any pieces, cut anywhere, or garbage: what is told, never more."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from model_api import (
    chat_plain,
    chat_stream,
    messages_plain,
    messages_stream,
    responses_plain,
    responses_stream,
    sse,
)

from eop.agents.gateway.sse import Events
from eop.agents.gateway.told import Reader, Told, Wire

COUNTS = st.integers(0, 10**9)
STREAMS = {
    Wire.MESSAGES: messages_stream,
    Wire.RESPONSES: responses_stream,
    Wire.CHAT: chat_stream,
}
PLAIN = {Wire.MESSAGES: messages_plain, Wire.RESPONSES: responses_plain, Wire.CHAT: chat_plain}


def told(wire: Wire, *pieces: bytes, streamed: bool = True) -> Told:
    reader = Reader(wire, streamed=streamed)
    for piece in pieces:
        reader.feed(piece)
    return reader.end()


def cut(data: bytes, at: list[int]) -> list[bytes]:
    edges = [0, *sorted({min(place, len(data)) for place in at}), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(edges)]


@given(st.sampled_from(Wire), COUNTS, COUNTS, st.data())
def test_every_way_to_cut_a_stream_into_pieces_tells_the_same(
    wire: Wire, read: int, written: int, data: st.DataObject
) -> None:
    hit = data.draw(st.integers(0, read))
    stream = b"".join(STREAMS[wire](read, written, hit))
    if data.draw(st.booleans()):
        stream = stream.replace(b"\n", b"\r\n")
    pieces = cut(stream, data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    seen = told(wire, *pieces)
    assert seen == told(wire, stream)
    assert (seen.input, seen.output, seen.cache_read, seen.complete) == (read, written, hit, True)


@given(st.sampled_from(Wire), COUNTS, COUNTS)
def test_a_plain_answer_tells_the_same_as_a_stream(wire: Wire, read: int, written: int) -> None:
    streamed = told(wire, *STREAMS[wire](read, written))
    assert told(wire, PLAIN[wire](read, written), streamed=False) == streamed


@given(st.sampled_from(Wire), st.booleans(), st.integers(1, 10**6), st.data())
def test_an_answer_that_was_cut_off_tells_no_more_than_came(
    wire: Wire, streamed: bool, read: int, data: st.DataObject
) -> None:
    written = 2 + data.draw(COUNTS)
    whole = b"".join(STREAMS[wire](read, written)) if streamed else PLAIN[wire](read, written)
    end = data.draw(st.integers(0, len(whole)))
    seen = told(wire, whole[:end], streamed=streamed)
    assert seen.input in (None, read)
    # An Anthropic stream begins with the count of one token.
    assert seen.output in (None, 1, written)
    if seen.complete:
        assert (seen.input, seen.output) == (read, written)


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
WORDS = (
    "type", "usage", "message", "message_start", "message_delta", "input_tokens", "output_tokens",
    "response", "response.completed", "prompt_tokens", "completion_tokens", "choices", "delta",
    "stop_reason", "error", "model", "prompt_tokens_details", "cached_tokens",
)  # fmt: skip
likely: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.sampled_from(WORDS),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=6)
    ),
    max_leaves=20,
)


@given(st.sampled_from(Wire), st.booleans(), st.binary(max_size=300))
def test_garbage_tells_nothing(wire: Wire, streamed: bool, garbage: bytes) -> None:
    seen = told(wire, garbage, streamed=streamed)
    assert replace(seen, finished=False, error=None) == Told()
    assert not seen.complete


@given(st.sampled_from(Wire), st.booleans(), st.lists(json_values | likely, max_size=6))
def test_whatever_is_sent_nothing_raises_and_counts_are_counts(
    wire: Wire, streamed: bool, events: list[Any]
) -> None:
    if streamed:
        seen = told(wire, *(f"data: {json.dumps(event)}\n\n".encode() for event in events))
    else:
        seen = told(wire, json.dumps(events[0] if events else None).encode(), streamed=False)
    for name in ("uncached", "cache_read", "cache_write", "output", "reasoning", "input"):
        value = getattr(seen, name)
        assert value is None or (type(value) is int and value >= 0)


@pytest.mark.parametrize(
    "wrong", [True, -1, 1.5, "12", None, [3], {"x": 1}, 10**16], ids=lambda wrong: repr(wrong)[:12]
)
def test_a_count_of_the_wrong_type_was_not_told(wrong: Any) -> None:
    usage = {"input_tokens": wrong, "output_tokens": wrong}
    body = json.dumps({"type": "message", "usage": usage}).encode()
    assert told(Wire.MESSAGES, body, streamed=False).input is None
    response = {"usage": usage}
    last = sse({"type": "response.completed", "response": response})
    assert not told(Wire.RESPONSES, *last).complete


def test_anthropic_totals_at_the_end_replace_those_of_the_beginning() -> None:
    start = {"usage": {"input_tokens": 5, "cache_read_input_tokens": 90, "output_tokens": 1}}
    hour = {"ephemeral_1h_input_tokens": 4}
    end = {"input_tokens": 6, "cache_creation_input_tokens": 10, "cache_creation": hour,
           "output_tokens": 40}  # fmt: skip
    seen = told(
        Wire.MESSAGES,
        *sse(
            {"type": "message_start", "message": start},
            {"type": "message_delta", "delta": {"stop_reason": None}, "usage": end},
        ),
    )
    assert (seen.input, seen.cache_write_1h, seen.output) == (106, 4, 40)
    assert not seen.complete, "another count may follow until there is a reason to stop"


FAILED = {"error": {"message": "overloaded"}, "usage": None}


def test_a_count_so_far_of_a_chat_is_no_total() -> None:
    choice = {"delta": {"content": "x"}}
    usage = {"prompt_tokens": 9, "completion_tokens": 1}
    seen = told(Wire.CHAT, *sse({"model": "m", "choices": [choice], "usage": usage}))
    assert (seen.input, seen.output, seen.complete) == (9, 1, False)
    assert told(Wire.CHAT, *sse({"choices": [choice], "usage": usage}, "[DONE]")).complete


def test_more_cached_than_read_is_no_count_of_the_cache() -> None:
    usage = {"input_tokens": 5, "input_tokens_details": {"cached_tokens": 6}, "output_tokens": 1}
    seen = told(Wire.RESPONSES, json.dumps({"usage": usage}).encode(), streamed=False)
    assert (seen.input, seen.cache_read) == (5, None)


@pytest.mark.parametrize(
    ("wire", "event"),
    [
        (Wire.MESSAGES, {"type": "error", "error": {"message": "overloaded"}}),
        (Wire.RESPONSES, {"type": "error", "message": "overloaded"}),
        (Wire.RESPONSES, {"type": "response.failed", "response": FAILED}),
        (Wire.CHAT, {"error": {"message": "overloaded"}}),
    ],
)  # fmt: skip
def test_an_error_in_a_stream_is_kept(wire: Wire, event: dict[str, Any]) -> None:
    seen = told(wire, *sse(event))
    assert (seen.error, seen.complete) == ("overloaded", False)


@example([b"data: 1\r\r", b"x"])
@example([b"data: 1\r", b"\n\r", b"\ndata: 2\n\n"])
@given(st.lists(st.binary(max_size=40), max_size=10))
def test_events_do_not_depend_on_the_pieces(pieces: list[bytes]) -> None:
    apart, together = Events(), Events()
    found = [event for piece in pieces for event in apart.feed(piece)]
    whole = together.feed(b"".join(pieces))
    # A carriage return at the very end may or may not be half of a line's end.
    assert found == whole or b"".join(pieces).endswith(b"\r")


def test_data_of_several_lines_is_one_event_and_comments_are_none() -> None:
    events = Events().feed(b': ping\n\nevent: x\ndata: {"a":\ndata:1}\nid: 7\n\ndata: [DONE]\n\n')
    assert events == [{"a": 1}, "[DONE]"]
