"""The page while a run goes on, on this machine alone: http://127.0.0.1:<port>/."""

from __future__ import annotations

import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from types import TracebackType

HOST = "127.0.0.1"


class PageServer:
    """Serves one page and its version; ``show`` puts a newer one in its place.

    It answers to its own name and address only, so that no other page in the reader's browser can
    read it by a name of its own that leads here.
    """

    def __init__(self, port: int = 0) -> None:
        self._shown = ("", b"")
        self._server = ThreadingHTTPServer((HOST, port), self._handler())
        self._server.daemon_threads = True

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._server.server_address[1])

    @property
    def address(self) -> str:
        """What to open in a browser."""
        return f"http://{HOST}:{self.port}/"

    def show(self, version: str, text: str) -> None:
        """Serve ``text`` from now on."""
        self._shown = (version, text.encode())

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                version, page = owner._shown
                known = {
                    "/": ("text/html; charset=utf-8", page),
                    "/version": ("text/plain; charset=utf-8", version.encode()),
                }
                if self.headers.get("Host") not in owner._names():
                    self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
                elif self.path not in known:
                    self.send_error(HTTPStatus.NOT_FOUND)
                else:
                    self._answer(*known[self.path])

            def _answer(self, kind: str, content: bytes) -> None:
                self.send_response(HTTPStatus.OK)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(content)))
                self.send_header("Cache-Control", "no-store")
                self.send_header("X-Content-Type-Options", "nosniff")
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing: the terminal is the person's."""

        return Handler

    def _names(self) -> set[str]:
        return {f"{HOST}:{self.port}", f"localhost:{self.port}"}
