"""The HTTP side of the gateway: one application for one attempt, in an event loop of its own."""

from __future__ import annotations

import hmac
import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.request import getproxies, proxy_bypass

import aiohttp
from aiohttp import web
from yarl import URL

from eop.agents.gateway import asked as asks
from eop.agents.gateway.ledger import plain
from eop.agents.gateway.meter import Admitted, Amount, Refused, charge
from eop.agents.gateway.proxied import (
    back_headers,
    onward_headers,
    own_error,
    refusal_status,
    route,
    token_of,
)
from eop.agents.gateway.sse import value_of
from eop.agents.gateway.told import Reader, Told, Wire
from eop.core.errors import EopError

if TYPE_CHECKING:
    from eop.agents.contract import Endpoint
    from eop.agents.gateway.asked import Asked
    from eop.agents.gateway.ledger import Ledger
    from eop.agents.gateway.meter import Meter

_MOST_BYTES = 64 << 20
_CONNECT_S = 30.0
_THIS_MACHINE = frozenset({"localhost", "127.0.0.1", "::1"})
_NOTHING = Admitted(Amount(), None)
_NOT_CONNECTED = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)


@dataclass
class Proxy:
    """Passes the calls of one attempt on. ``traffic`` counts the bytes of answers of models."""

    upstream: Endpoint
    token: str
    meter: Meter
    ledger: Ledger
    traffic: int = 0
    _calls: int = 0
    _session: aiohttp.ClientSession | None = field(default=None, repr=False)

    def application(self) -> web.Application:
        """The application that serves it."""
        app = web.Application(client_max_size=_MOST_BYTES)
        app.router.add_route("*", "/{path:.*}", self._handle)
        app.cleanup_ctx.append(self._sessions)
        return app

    async def _sessions(self, app: web.Application) -> Any:
        del app
        # No limit on time: the runtime ends an agent whose calls make no progress.
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S)
        async with aiohttp.ClientSession(
            timeout=timeout, connector=aiohttp.TCPConnector(limit=0),
            skip_auto_headers=("User-Agent", "Accept", "Content-Type"),
        ) as self._session:  # fmt: skip
            yield

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if request.method == "HEAD":
            return web.Response()
        base = URL(self.upstream.url)
        way = route(request.method, request.path, base.path.rstrip("/"))
        wire = way.wire if way else None
        if not hmac.compare_digest(token_of(request.headers).encode(), self.token.encode()):
            return _answer(401, own_error(wire, "this is not the token of the attempt", "auth"))
        if way is None:
            message = f"the gateway does not pass {request.method} {request.path} on"
            return _answer(404, own_error(None, message, "not_found_error"))
        url = base.with_path(way.path).with_query(request.rel_url.query)
        body = await request.read()
        if wire is None:
            return await self._pass(request, url, body, None)
        wanted = value_of(body)
        if not isinstance(wanted, dict):
            message = "the body of the request is no JSON object"
            return _answer(400, own_error(wire, message, "invalid_request_error"))
        return await self._call(request, url, wire, wanted, len(body))

    async def _call(
        self, request: web.Request, url: URL, wire: Wire, wanted: dict[str, Any], size: int
    ) -> web.StreamResponse:
        """Admit a call, pass it on, and settle it however it ends."""
        self._calls += 1
        asked = asks.read(wire, wanted, size)
        call = _Call(self._calls, wire, asked, time.time())
        decided = self.meter.admit(call.number, asked)
        if isinstance(decided, Refused):
            return self._refuse(call, decided)
        call.admitted = decided
        try:
            self.ledger.reserve({"call": call.number, "time": call.began, "model": asked.model,
                                 "reserved": plain(decided.reserved)})  # fmt: skip
        except EopError as error:
            self.meter.settle(call.number, Amount())
            return _answer(500, own_error(wire, f"the ledger: {error.message}", "api_error"))
        amended = asks.amended(wire, wanted, decided.most_output)
        try:
            # Written anew: of a key that was given twice, the API must see the value that was read.
            return await self._pass(request, url, json.dumps(amended).encode(), call)
        finally:
            # Also when the agent has gone, or the attempt has ended: then this is cancelled.
            self._settle(call)

    def _refuse(self, call: _Call, refused: Refused) -> web.Response:
        status = refusal_status(call.wire)
        self.ledger.settle({**call.line(), "status": status, "refused": refused.why,
                            "detail": refused.detail})  # fmt: skip
        code = "permission_error" if call.wire is Wire.MESSAGES else "invalid_request_error"
        return _answer(status, own_error(call.wire, refused.detail, code))

    def _settle(self, call: _Call) -> None:
        """Charge a call, once: before the agent sees its end, for the next may follow at once."""
        if call.settled:
            return
        call.settled = True
        charged = charge(call.admitted, call.told)
        self.meter.settle(call.number, charged)
        self.ledger.settle({**call.line(), **call.outcome(), "charged": plain(charged)})

    async def _pass(
        self, request: web.Request, url: URL, body: bytes, call: _Call | None
    ) -> web.StreamResponse:
        assert self._session is not None
        headers = onward_headers(request.headers.items(), self.token, self.upstream.token)
        wire = call.wire if call else None
        try:
            async with self._session.request(
                request.method,
                url,
                headers=headers,
                data=body or None,
                allow_redirects=False,
                proxy=proxy_of(url),
            ) as answer:
                return await self._back(request, answer, call)
        except aiohttp.ClientError as error:
            # Its words name the host at most, no header.
            message = f"the model's API: {error or type(error).__name__}"
            if call:
                call.error = message
                # Then nothing was sent, and nothing is charged.
                call.sent = not isinstance(error, _NOT_CONNECTED)
            return _answer(502, own_error(wire, message, "api_error"))

    async def _back(
        self, request: web.Request, answer: aiohttp.ClientResponse, call: _Call | None
    ) -> web.StreamResponse:
        """Hand an answer on, piece by piece as it comes, and read its usage on the way."""
        if call:
            call.answered(answer)
        response = web.StreamResponse(status=answer.status, reason=answer.reason)
        for name, value in back_headers(answer.headers.items()):
            response.headers.add(name, value)
        try:
            await response.prepare(request)
            async for piece in answer.content.iter_any():
                if call:
                    self.traffic += len(piece)
                    if call.takes_all_of(piece):
                        self._settle(call)
                await response.write(piece)
            if call:
                self._settle(call)
            await response.write_eof()
        except aiohttp.ClientError as error:
            # The agent must see that this is no end: its connection breaks as the API's did.
            if call:
                call.error = str(error) or type(error).__name__
            if request.transport is not None:
                request.transport.abort()
        return response


@dataclass
class _Call:
    """A call on its way, and what is known of it."""

    number: int
    wire: Wire
    asked: Asked
    began: float
    admitted: Admitted = _NOTHING
    status: int | None = None
    reader: Reader | None = None
    error: str | None = None
    sent: bool = True
    settled: bool = False

    def answered(self, answer: aiohttp.ClientResponse) -> None:
        """The API has begun to answer."""
        self.status = answer.status
        if answer.status < 400:
            streamed = answer.content_type == "text/event-stream"
            self.reader = Reader(self.wire, streamed=streamed)

    def takes_all_of(self, piece: bytes) -> bool:
        """Read the next bytes of the answer; whether all that matters has been told."""
        if self.reader is None:
            return False
        self.reader.feed(piece)
        return self.reader.told.complete

    @property
    def told(self) -> Told | None:
        """What the answer told; ``None`` for a call that came to nothing and costs nothing."""
        if not self.sent or (self.status or 0) >= 400:
            return None
        return self.reader.end() if self.reader else Told()

    def line(self) -> dict[str, Any]:
        """What the ledger has of every call."""
        return {
            "call": self.number,
            "time": self.began,
            "seconds": round(time.time() - self.began, 3),
            "protocol": self.wire,
            "model": self.asked.model,
        }

    def outcome(self) -> dict[str, Any]:
        """How a call that was made has ended; tokens that were not told are ``null``."""
        told, price = self.told, self.admitted.price
        if told is None:
            zero = dict.fromkeys(("input", "cache_read", "cache_write", "output", "reasoning"), 0)
            return {"status": self.status, **zero, "usd": "0", "usd_basis": "gateway",
                    "complete": True, "error": self.error}  # fmt: skip
        usd = price.cost(told) if price and told.input is not None else None
        priced = price is not None and (usd is not None or told.input is None)
        return {
            "status": self.status,
            "answered_by": told.model,
            "input": told.input,
            "cache_read": told.cache_read,
            "cache_write": told.cache_write,
            "output": told.output,
            "reasoning": told.reasoning,
            "usd": None if usd is None else f"{usd:f}",
            "usd_basis": "gateway" if priced else "none",
            "complete": told.complete,
            "error": told.error or self.error,
        }


def proxy_of(url: URL) -> str | None:
    """The proxy of the operator's environment that leads to ``url``; none to this machine itself.

    Not by aiohttp's own reading of the environment, which would take a password from a netrc too.
    """
    host = url.host or ""
    if host in _THIS_MACHINE or proxy_bypass(host):
        return None
    return getproxies().get(url.scheme)


def _answer(status: int, body: bytes) -> web.Response:
    return web.Response(status=status, body=body, content_type="application/json")
