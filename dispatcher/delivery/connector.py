"""Connections whose answers are parsed head first."""

from __future__ import annotations

from functools import partial
from typing import Any

from aiohttp import TCPConnector
from aiohttp.client_proto import ResponseHandler


class HeadFirst(ResponseHandler):
    """Parses a head before it looks at what follows.

    The parser throws away a whole segment for a fault anywhere in it. The status of an answer whose body
    is broken would then be lost, or not, by how the network cut it into pieces.
    """

    _seen = b""

    def data_received(self, data: bytes) -> None:
        # A blank line may have begun with the end of what came before.
        joined, done = self._seen + data, len(self._seen)
        self._seen = joined[-3:]
        while not self.exception() and (found := joined.find(b"\r\n\r\n", max(done - 3, 0))) >= 0:
            self._parse(joined[done : found + 4])
            done = found + 4
        # Nothing at all is how the client asks for the rest of what it held back.
        if not data or done < len(joined):
            self._parse(joined[done:])

    def _parse(self, data: bytes) -> None:
        super().data_received(data)
        fault = self.exception()
        if fault is not None and self._payload is not None:
            # Else whoever reads the body would wait for the rest of it until the deadline.
            self._payload.set_exception(fault)


class Connector(TCPConnector):
    """Opens connections that parse heads first."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # No public way leads here. Should the name change, only broken bodies fare worse: a test tells.
        self._factory = partial(HeadFirst, loop=self._loop)  # type: ignore[assignment]
