"""A running gateway: the server of one attempt, in a thread of the process that runs the node."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import threading
from typing import TYPE_CHECKING

from aiohttp import web
from yarl import URL

from eop.agents.contract import Endpoint, Request
from eop.agents.gateway.ledger import Ledger
from eop.agents.gateway.meter import Caps, Meter
from eop.agents.gateway.server import Proxy
from eop.agents.jail import Containment, Way

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from eop.agents.gateway.prices import Prices
    from eop.agents.jail import Jail

# Where a forwarder listens in a network namespace of its own, in which every port is free.
PORT_INSIDE = 8099
_SOCKET = ("gateway", "model.sock")
_CLOSE_S = 2.0


def before(upstream: Endpoint, request: Request, prices: Prices, jail: Jail) -> Gateway:
    """The gateway that stands before ``upstream`` for an attempt, with its limits as caps."""
    contained = jail.containment() is Containment.NAMESPACE
    caps = Caps.of(request.limits)
    return Gateway(upstream, caps, prices, request.directory, contained=contained)


class Gateway:
    """``with Gateway(…) as gateway``: serves as long as the block lasts.

    ``directory`` is the attempt's folder, which gets the ledger. ``contained``: the agent has a
    network of its own, and comes by a Unix socket in ``directory/gateway``. The process that
    holds it has the key in its memory; whoever talks to it needs the attempt's token.
    """

    def __init__(
        self, upstream: Endpoint, caps: Caps, prices: Prices, directory: Path, *, contained: bool
    ) -> None:
        # Looks like a key, so that whoever finds one takes it out (``eop.agents.redact``), even
        # when the process that knew it is dead.
        self._token = f"sk-eop1-{secrets.token_urlsafe(32)}"
        self._proxy = Proxy(upstream, self._token, Meter(caps, prices), Ledger(directory))
        self._path = directory.joinpath(*_SOCKET) if contained else None
        self._base = URL(upstream.url).raw_path.rstrip("/")
        self._listener: socket.socket | None = None
        self._port = PORT_INSIDE
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="gateway", daemon=True)

    @property
    def way(self) -> Way:
        """How the agent comes to it."""
        return Way(self._port, self._path)

    @property
    def endpoint(self) -> Endpoint:
        """What the agent is told: the gateway as its model's API, and its token."""
        return Endpoint(f"http://127.0.0.1:{self.way.port}{self._base}", self._token)

    def traffic(self) -> int:
        """How many bytes the model's API has answered with until now: a sign of progress."""
        return self._proxy.traffic

    def __enter__(self) -> Gateway:
        self._listener = _listen(self._path)
        if self._path is None:
            self._port = self._listener.getsockname()[1]
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def _run(self) -> None:
        assert self._listener is not None
        # Whatever ends the server, nobody may wait for it to accept.
        with self._listener, asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        # A call whose agent has gone ends at once: what it still wrote would be paid for.
        runner = web.AppRunner(
            self._proxy.application(), handler_cancellation=True, access_log=None,
            handle_signals=False, shutdown_timeout=_CLOSE_S,
        )  # fmt: skip
        await runner.setup()
        assert self._listener is not None
        await web.SockSite(runner, self._listener).start()
        await self._stop.wait()
        await runner.cleanup()


def _listen(path: Path | None) -> socket.socket:
    """A bound socket: the kernel queues connections from now on, before anybody accepts."""
    if path is None:
        return socket.create_server(("127.0.0.1", 0))
    path.parent.mkdir(mode=0o700)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # A path to a socket holds 107 bytes at most; one through an open folder is always short.
    folder = os.open(path.parent, os.O_PATH | os.O_CLOEXEC)
    try:
        listener.bind(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.close(folder)
    listener.listen(64)
    return listener
