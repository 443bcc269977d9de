"""Requests over HTTP/1.1, to receivers that may be broken or hostile."""

from __future__ import annotations

import asyncio
import ssl
import time
import zlib
from collections.abc import Callable
from functools import lru_cache
from typing import Final

import aiohttp
from aiohttp.http import RawResponseMessage
from aiohttp.streams import StreamReader
from msgspec import Struct
from yarl import URL

from dispatcher.delivery.authentication import basic_value
from dispatcher.delivery.connection import CURRENT, Wire, make_socket
from dispatcher.delivery.connector import Connector, HeadFirst
from dispatcher.delivery.faults import error_code
from dispatcher.delivery.guard import Guard, Target, check_url
from dispatcher.delivery.headers import FRAMING, is_wellformed, merge
from dispatcher.delivery.refusals import InvalidHeaders, UrlRefused
from dispatcher.delivery.resolve import DnsLookup, Lookup, VettingResolver
from dispatcher.delivery.retry_after import parse_retry_after
from dispatcher.delivery.transport import MAX_KEPT, Answer, Request, never_sent, no_answer

MAX_READ: Final = 64 * 1024
"""Bytes of an answer's body that are read, decompressed; what is on the wire has its own bound."""
MAX_HEADER_LINE: Final = 32 * 1024
"""Bytes; some honest receivers send long policies."""
TARGETS_KNOWN: Final = 4096
"""URLs that are not taken apart again for each attempt."""

# The one deadline is set around everything; aiohttp's own would be several, and round up.
_NO_TIMEOUTS: Final = aiohttp.ClientTimeout(total=None, connect=None, sock_connect=None, sock_read=None)


class Place(Struct, frozen=True):
    """Where a URL leads, as our parts need it and as aiohttp does."""

    target: Target
    connecting: aiohttp.ClientRequest
    """Tells the connector what to connect to; it is never sent."""


class HttpTransport:
    """Sends each request once, to an address that the guard allows.

    Of one event loop: the one that first sends. `close` it there.

    aiohttp connects, keeps connections and parses answers. Its ClientSession is left out: all that it adds,
    redirects, cookies, proxies, sending again, decompressing and headers of its own, would have to be turned
    off, and cost half of the CPU of an attempt.

    A connection over which all went well is kept for the next request to the same host and port, for a
    second: over plain HTTP that saves half of the CPU, and over TLS far more. Where it leads was decided
    when it was opened.
    """

    def __init__(
        self,
        guard: Guard | None = None,
        *,
        lookup: Lookup | None = None,
        ssl_context: ssl.SSLContext | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """The context for operators with authorities of their own; the clock in seconds since 1970."""
        self._guard = Guard() if guard is None else guard
        self._place = lru_cache(maxsize=TARGETS_KNOWN)(self._found)
        self._resolver = VettingResolver(DnsLookup() if lookup is None else lookup)
        self._ssl: ssl.SSLContext | bool = True if ssl_context is None else ssl_context
        self._clock = clock
        self._connector: Connector | None = None
        self._closed = False

    async def send(self, request: Request) -> Answer:
        """What came of a request; raises nothing but CancelledError."""
        if self._closed:
            return no_answer("aborted")
        try:
            place = self._place(request.url)
            data = _as_sent(request, place.target)
        except (UrlRefused, InvalidHeaders) as refused:
            return never_sent(refused.code)
        wire = Wire(self._guard)
        exchange = _Exchange(self._clock)
        token = CURRENT.set(wire)
        try:
            async with asyncio.timeout(request.deadline):
                try:
                    await self._exchange(place, data, exchange)
                except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError):
                    if not wire.went_stale:
                        raise
                    # The receiver closed a kept connection just then. As Go's net/http does for a request
                    # with an Idempotency-Key: once more, over a new one.
                    wire.cut()
                    wire.fresh = True
                    await self._exchange(place, data, exchange)
        # Whatever a hostile receiver provokes inside the client is its answer, not our crash. Once the
        # status has arrived it decides, and what happens afterwards only ended the reading.
        except Exception as error:
            return exchange.answer or no_answer(error_code(error, wire))
        finally:
            CURRENT.reset(token)
            if not exchange.complete:
                wire.cut()
        return exchange.answer or no_answer("invalid_response")

    async def _exchange(self, place: Place, data: bytes, exchange: _Exchange) -> None:
        connection = await self._opened().connect(place.connecting, [], _NO_TIMEOUTS)
        protocol, transport = connection.protocol, connection.transport
        try:
            assert isinstance(protocol, HeadFirst)
            if transport is None:
                raise aiohttp.ServerDisconnectedError
            protocol.begin()
            protocol.set_response_params(
                read_until_eof=True,
                # Decompressing is ours, with a bound.
                auto_decompress=False,
                max_line_size=MAX_HEADER_LINE,
                max_field_size=MAX_HEADER_LINE,
                max_headers=256,
            )
            transport.write(data)
            await exchange.read(*await _final_head(protocol))
            # One that answers early may never read the rest.
            exchange.complete = exchange.complete and not transport.get_write_buffer_size()
        finally:
            if exchange.complete and isinstance(protocol, HeadFirst):
                protocol.end()
                connection.release()
            else:
                connection.close()

    async def close(self) -> None:
        self._closed = True
        if self._connector is not None:
            await self._connector.close()
            self._connector = None
        await self._resolver.close()

    def _found(self, url: str) -> Place:
        target = check_url(url, self._guard)
        loop = asyncio.get_running_loop()
        return Place(target, aiohttp.ClientRequest("POST", URL(target.url, encoded=True), loop=loop))

    def _opened(self) -> Connector:
        if self._connector is None:
            self._connector = Connector(
                resolver=self._resolver,
                socket_factory=make_socket,
                use_dns_cache=False,
                # The worker limits what is in flight; a second queue here would spend deadlines waiting.
                limit=0,
                ssl=self._ssl,
            )
        return self._connector


class _Exchange:
    """An answer, as far as it has arrived."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._status = 0
        self._retry_after: int | None = None
        self._kept = b""
        self.complete = False
        """Whether the connection is free for another request."""

    @property
    def answer(self) -> Answer | None:
        """None until a status has arrived that HTTP knows."""
        if not 100 <= self._status <= 599:
            return None
        return Answer(status=self._status, retry_after=self._retry_after, body=self._kept)

    async def read(self, head: RawResponseMessage, body: StreamReader) -> None:
        self._status = head.code
        if hints := head.headers.getall("Retry-After", None):
            self._retry_after = parse_retry_after(hints, int(self._clock()))
        if not body.at_eof():
            await self._read_body(head.headers.get("Content-Encoding", "identity"), body)
        self.complete = body.at_eof()

    async def _read_body(self, encoding: str, body: StreamReader) -> None:
        expand = _expander(encoding)
        left = MAX_READ
        async for chunk in body.iter_any():
            data = expand(chunk, left)
            self._kept = (self._kept + data)[:MAX_KEPT]
            left -= len(data)
            if left <= 0:
                return


async def _final_head(protocol: HeadFirst) -> tuple[RawResponseMessage, StreamReader]:
    """The head of the answer, and its body to be read; interim answers are passed over."""
    while True:
        head, body = await protocol.read()
        if not 100 <= head.code < 200 or head.code == 101:
            return head, body


def _as_sent(request: Request, target: Target) -> bytes:
    """The bytes of a request. Its headers are looked at once more: what was stored may precede the rules."""
    # Compressed answers are of no use here, and one kind of attack.
    ours = [("Accept-Encoding", "identity")]
    if target.userinfo is not None:
        ours.append(("Authorization", basic_value(*target.userinfo)))
    headers = merge(ours, request.headers)
    if not FRAMING.isdisjoint(headers) or not all(is_wellformed(*one) for one in request.headers):
        raise InvalidHeaders("a stored header can not be sent")
    lines = "".join([f"{name}: {value}\r\n" for name, value in headers.values()])
    head = (
        f"{request.method} {target.path} HTTP/1.1\r\nHost: {target.authority}\r\n{lines}"
        f"Content-Length: {len(request.body)}\r\n\r\n"
    )
    return head.encode("ascii") + request.body


def _expander(encoding: str) -> Callable[[bytes, int], bytes]:
    """A function of a chunk and the most bytes to make of it. Raises ValueError for an unknown encoding."""
    match encoding.strip().lower():
        case "identity" | "":
            return lambda chunk, most: chunk[:most]
        case "gzip" | "x-gzip" | "deflate":
            # Finds out itself which of the two it is.
            return zlib.decompressobj(wbits=zlib.MAX_WBITS | 32).decompress
        case _:
            raise ValueError("unknown content encoding")
