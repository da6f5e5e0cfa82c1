"""A model's API for tests: real HTTP on the loopback, answers as a test has scripted them."""

from __future__ import annotations

import json
import socket
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

KEY = "real-key-that-no-agent-may-see"


@dataclass
class Answer:
    """One answer. ``frames`` are sent one by one, ``pause_s`` after each.

    After them the connection breaks (``cut``), or says nothing more for ``hang_s``.
    """

    body: bytes = b""
    frames: list[bytes] = field(default_factory=list)
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    hang_s: float = 0.0
    pause_s: float = 0.0


@dataclass
class Upstream:
    """``answers`` are given in turn, the last one again and again; ``seen`` is what came in."""

    url: str
    answers: list[Answer]
    seen: list[dict[str, Any]] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)

    def next(self) -> Answer:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class Handler(BaseHTTPRequestHandler):
    """Answers as its ``upstream`` says."""

    protocol_version = "HTTP/1.1"
    upstream: Upstream

    def log_message(self, *_: Any) -> None: ...

    def do_GET(self) -> None:
        self._serve(b"")

    def do_POST(self) -> None:
        self._serve(self.rfile.read(int(self.headers.get("content-length") or 0)))

    def handle(self) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):
            super().handle()

    def _serve(self, body: bytes) -> None:
        self.upstream.seen.append(
            {
                "method": self.command,
                "path": self.path,
                "headers": {name.lower(): value for name, value in self.headers.items()},
                "body": json.loads(body) if body else None,
                "raw": body,
            }
        )
        answer = self.upstream.next()
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.frames:
            self._stream(answer)
            return
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def _stream(self, answer: Answer) -> None:
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for frame in answer.frames:
            self.wfile.write(f"{len(frame):x}\r\n".encode() + frame + b"\r\n")
            self.wfile.flush()
            time.sleep(answer.pause_s)
        if answer.hang_s:
            self.upstream.released.wait(answer.hang_s)
        if answer.cut:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.wfile.write(b"0\r\n\r\n")


@contextmanager
def upstream(*answers: Answer, path: str = "") -> Iterator[Upstream]:
    """Serve ``answers`` below ``path`` as long as the block lasts."""
    handler = type("OwnHandler", (Handler,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    served = Upstream(f"http://127.0.0.1:{server.server_address[1]}{path}", list(answers))
    handler.upstream = served
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield served
    finally:
        served.released.set()
        server.shutdown()
        server.server_close()


def sse(*events: dict[str, Any] | str) -> list[bytes]:
    """Frames of a stream; a text is its data as it stands."""
    frames = []
    for event in events:
        if isinstance(event, str):
            frames.append(f"data: {event}\n\n".encode())
        else:
            name = f"event: {event['type']}\n" if "type" in event else ""
            frames.append(f"{name}data: {json.dumps(event, ensure_ascii=False)}\n\n".encode())
    return frames


def anthropic_usage(read: int, written: int, hit: int = 0, put: int = 0) -> dict[str, int]:
    return {
        "input_tokens": read - hit - put, "cache_read_input_tokens": hit,
        "cache_creation_input_tokens": put, "output_tokens": written,
    }  # fmt: skip


def messages_stream(read: int, written: int, hit: int = 0, put: int = 0) -> list[bytes]:
    usage = anthropic_usage(read, written, hit, put)
    first = {"model": "claude-x", "usage": {**usage, "output_tokens": 1}}
    text = {"type": "text_delta", "text": "héllo"}
    return sse(
        {"type": "message_start", "message": first},
        {"type": "ping"},
        {"type": "content_block_delta", "index": 0, "delta": text},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": {"output_tokens": written},
        },
        {"type": "message_stop"},
    )


def messages_plain(read: int, written: int, hit: int = 0, put: int = 0) -> bytes:
    usage = anthropic_usage(read, written, hit, put)
    return json.dumps({"type": "message", "model": "claude-x", "usage": usage}).encode()


def responses_usage(read: int, written: int, hit: int = 0) -> dict[str, Any]:
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": hit},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": 1},
    }


def responses_stream(read: int, written: int, hit: int = 0) -> list[bytes]:
    usage = responses_usage(read, written, hit)
    return sse(
        {"type": "response.created", "response": {"model": "gpt-x", "usage": None}},
        {"type": "response.output_text.delta", "delta": "hello"},
        {"type": "response.completed", "response": {"model": "gpt-x", "usage": usage}},
    )


def responses_plain(read: int, written: int, hit: int = 0) -> bytes:
    usage = responses_usage(read, written, hit)
    return json.dumps({"object": "response", "model": "gpt-x", "usage": usage}).encode()


def chat_usage(read: int, written: int, hit: int = 0) -> dict[str, Any]:
    return {
        "prompt_tokens": read,
        "completion_tokens": written,
        "prompt_tokens_details": {"cached_tokens": hit},
    }


def chat_stream(read: int, written: int, hit: int = 0) -> list[bytes]:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {"model": "chat-x", "choices": [{"delta": delta, "finish_reason": finish}]}

    last = {"model": "chat-x", "choices": [], "usage": chat_usage(read, written, hit)}
    return sse(chunk({"content": "hello"}), chunk({}, "stop"), last, "[DONE]")


def chat_plain(read: int, written: int, hit: int = 0) -> bytes:
    usage = chat_usage(read, written, hit)
    return json.dumps({"model": "chat-x", "choices": [{}], "usage": usage}).encode()


def wait_until(true: Any, seconds: float = 10.0) -> None:
    """Wait for what another thread does; a failure, not a timing, when it never does."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)
