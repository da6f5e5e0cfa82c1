"""The scripted model behind HTTP, on the loopback interface only."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

from scripted_model import chat, messages, responses
from scripted_model.script import Asked, Fault, Say, Script

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType, TracebackType

_PROTOCOLS: tuple[ModuleType, ...] = (messages, responses, chat)
_KEY_HEADERS = ("x-api-key", "authorization")


@dataclass(frozen=True)
class Seen:
    """A request that came: ``asked`` and what was answered, where it was for the model.

    ``step`` is ``None`` for a request that was refused before the script was asked.
    """

    method: str
    path: str
    asked: Asked | None = None
    step: Say | Fault | None = None
    refusal: str = ""


class ScriptedModel(ThreadingHTTPServer):
    """``with ScriptedModel(script, token="t") as model:`` - then ``model.url`` answers.

    Requests with another token get 401, like those that the real service would refuse get 400.
    ``seen`` has every request in the order of arrival.
    """

    daemon_threads = True

    def __init__(self, script: Script, token: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script, self.token = script, token
        self.seen: list[Seen] = []
        self.stopping = threading.Event()

    @property
    def url(self) -> str:
        """Its base address, without a path."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def asked(self) -> list[Asked]:
        """The requests for the model that came with tools, in their order."""
        return [one.asked for one in self.seen if one.asked and one.asked.tools]

    @property
    def said(self) -> list[Say]:
        """All that was answered."""
        return [one.step for one in self.seen if isinstance(one.step, Say)]

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.stopping.set()
        self.shutdown()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was killed while it was answered is what some tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ScriptedModel

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self._see(Seen("HEAD", self.path))
        self._send(200, b"", "text/plain")

    def do_GET(self) -> None:
        self._see(Seen("GET", self.path))
        self._json(404, {"error": {"type": "not_found_error", "message": self.path}})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        path = self.path.partition("?")[0]
        protocol = next((one for one in _PROTOCOLS if path == one.PATH), None)
        if protocol is None:
            self._see(Seen("POST", self.path))
            self._json(404, {"error": {"type": "not_found_error", "message": path}})
            return
        self._answer(protocol, json.loads(raw))

    def _answer(self, protocol: ModuleType, body: dict[str, Any]) -> None:
        if not self._authorised():
            self._refuse(protocol, 401, "authentication_error", "invalid x-api-key")
            return
        try:
            asked = protocol.read(body)
            step = self.server.script.next(asked)
        except (ValueError, LookupError, AssertionError) as error:
            self._refuse(protocol, 400, "invalid_request_error", str(error))
            return
        self._see(Seen("POST", self.path, asked, step))
        if isinstance(step, Fault):
            self._fail(protocol, step)
            return
        whole = protocol.reply(step, asked.model)
        if asked.stream:
            self._stream(protocol.frames(whole))
        else:
            self._json(200, whole)

    def _authorised(self) -> bool:
        sent = [self.headers.get(name) or "" for name in _KEY_HEADERS]
        return self.server.token in [value.removeprefix("Bearer ") for value in sent]

    def _refuse(self, protocol: ModuleType, status: int, kind: str, why: str) -> None:
        self._see(Seen("POST", self.path, refusal=why))
        self._json(status, protocol.complaint(kind, why))

    def _fail(self, protocol: ModuleType, fault: Fault) -> None:
        if fault.status is not None:
            self._json(fault.status, protocol.complaint(fault.kind, fault.message))
            return
        self._begin_stream()
        self.server.stopping.wait()
        self.close_connection = True

    def _see(self, seen: Seen) -> None:
        self.server.seen.append(seen)

    def _json(self, status: int, body: dict[str, Any]) -> None:
        self._send(status, json.dumps(body).encode(), "application/json")

    def _send(self, status: int, payload: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def _begin_stream(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        self.wfile.flush()

    def _stream(self, frames: Iterable[tuple[str | None, dict[str, Any] | None]]) -> None:
        self._begin_stream()
        with suppress(BrokenPipeError, ConnectionResetError):
            for name, data in frames:
                head = f"event: {name}\n" if name else ""
                line = f"data: {'[DONE]' if data is None else json.dumps(data)}\n\n"
                frame = (head + line).encode()
                self.wfile.write(b"%x\r\n%s\r\n" % (len(frame), frame))
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")
