"""Connections whose answers are parsed head first, and that are kept only while nothing is odd about them."""

from __future__ import annotations

import errno
from functools import partial
from typing import Any, Final

import aiohttp
from aiohttp import TCPConnector
from aiohttp.client_proto import ResponseHandler

from dispatcher.delivery.connection import CURRENT

KEPT_SECONDS: Final = 1.0
"""How long an idle connection waits for its next request.

Receivers close idle ones after two seconds and more; ours goes first. Of one that is closed just when a
request is sent nobody can tell whether it arrived.
"""
MAX_RECEIVED: Final = 256 * 1024
"""Bytes of one attempt that are parsed: headers, interim answers and body together."""
MAX_INTERIM: Final = 16
"""Interim answers of one attempt. Each takes as long to parse as an answer does."""


class HeadFirst(ResponseHandler):
    """Parses a head before it looks at what follows, and an answer only to what was asked.

    The parser throws away a whole segment for a fault anywhere in it. The status of an answer whose body
    is broken would then be lost, or not, by how the network cut it into pieces.
    """

    _seen = b""
    _asked = False
    _interim = 0
    _answered = False
    uses = 0
    received = 0

    def begin(self) -> None:
        """A request is about to be sent."""
        self._seen, self._asked = b"", True
        self._interim, self._answered = 0, False
        self.uses += 1
        self.received = 0

    def end(self) -> None:
        """Its answer has been read: whatever comes now, nobody asked for it."""
        self._asked = False

    def data_received(self, data: bytes) -> None:
        self.received += len(data)
        if self.received > MAX_RECEIVED or (data and not self._asked):
            # An endless answer costs its bytes, not its deadline. What comes unasked would be read as the
            # answer to the next request, perhaps another tenant's.
            self._fail(aiohttp.ClientOSError(errno.EMSGSIZE, "answer too large"))
            return
        # A blank line may have begun with the end of what came before.
        joined, done = self._seen + data, len(self._seen)
        self._seen = joined[-3:]
        # Up to the answer's own head: a body of nothing but blank lines is not cut into a thousand pieces.
        while (
            not self._answered
            and not self.exception()
            and (found := joined.find(b"\r\n\r\n", max(done - 3, 0))) >= 0
        ):
            self._parse(joined[done : found + 4])
            done = found + 4
            if self._interim > MAX_INTERIM:
                self._fail(aiohttp.ClientOSError(errno.EMSGSIZE, "too many interim answers"))
                return
        # Nothing at all is how the client asks for the rest of what it held back.
        if not data or done < len(joined):
            self._parse(joined[done:])

    def feed_data(self, data: Any, size: int = 0) -> None:
        """A head was parsed: (message, body)."""
        if 100 <= data[0].code <= 199 and data[0].code != 101:
            self._interim += 1
        else:
            self._answered = True
        super().feed_data(data, size)

    def _parse(self, data: bytes) -> None:
        super().data_received(data)
        fault = self.exception()
        if fault is not None and self._payload is not None:
            # Else whoever reads the body would wait for the rest of it until the deadline.
            self._payload.set_exception(fault)

    def _fail(self, error: Exception) -> None:
        self.set_exception(error)
        if self._payload is not None:
            self._payload.set_exception(error)
        if self.transport is not None:
            self.transport.abort()


class Connector(TCPConnector):
    """Opens connections that parse heads first, and tells each attempt which one it is sent over."""

    def __init__(self, **options: Any) -> None:
        super().__init__(keepalive_timeout=KEPT_SECONDS, **options)
        # No public way leads here. Should the name change, only broken bodies fare worse: a test tells.
        self._factory = partial(HeadFirst, loop=self._loop)  # type: ignore[assignment]

    async def connect(self, *arguments: Any, **options: Any) -> aiohttp.connector.Connection:
        wire = CURRENT.get()
        while True:
            connection = await super().connect(*arguments, **options)
            protocol = connection.protocol
            assert isinstance(protocol, HeadFirst)
            if not wire.fresh or not protocol.uses:
                wire.use(protocol)
                return connection
            connection.close()
