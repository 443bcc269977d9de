"""What one attempt sends over: where its sockets lead, and that what it leaves unfinished ends with it."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from contextvars import ContextVar
from typing import Any, Final, Protocol

from dispatcher.delivery.guard import Guard


class AddressBlocked(OSError):
    """No socket is made for this address."""

    def __init__(self) -> None:
        super().__init__(errno.EACCES, "address not allowed")


class Reusable(Protocol):
    """A connection over which one request is sent after another."""

    uses: int
    received: int
    """Bytes that came since the latest request began."""

    @property
    def transport(self) -> asyncio.BaseTransport | None: ...


class Wire:
    """Everything that one attempt opens, or takes over from an earlier one."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._sockets: list[socket.socket] = []
        self._connection: Reusable | None = None
        self.blocked = False
        """Whether an address was refused."""
        self.fresh = False
        """Whether only a new connection will do."""

    def vet(self, address: str) -> None:
        """Raises AddressBlocked unless a socket may be connected to an address."""
        if not self._guard.allows(address):
            self.blocked = True
            raise AddressBlocked

    def open(self, family: int, kind: int, protocol: int, address: str) -> socket.socket:
        """A socket for an address that was just vetted, the last moment before it is connected."""
        self.vet(address)
        opened = socket.socket(family, kind, protocol)
        self._sockets.append(opened)
        return opened

    def use(self, connection: Reusable) -> None:
        """Send over this connection, new or kept."""
        self._connection = connection

    @property
    def went_stale(self) -> bool:
        """Whether the attempt was sent over a kept connection from which nothing more came."""
        return self._connection is not None and self._connection.uses > 1 and not self._connection.received

    def cut(self) -> None:
        """End every connection now.

        Closing alone would wait until a receiver that reads nothing has taken what is still to be sent.
        """
        if self._connection is not None and isinstance(self._connection.transport, asyncio.WriteTransport):
            self._connection.transport.abort()
        for opened in self._sockets:
            if opened.fileno() != -1:
                with contextlib.suppress(OSError):
                    opened.shutdown(socket.SHUT_RDWR)


CURRENT: Final[ContextVar[Wire]] = ContextVar("wire")
"""The attempt that the running task is part of."""


def make_socket(info: tuple[Any, Any, int, str, tuple[Any, ...]]) -> socket.socket:
    """A socket for one result of getaddrinfo, on behalf of the current attempt."""
    family, kind, protocol, _, address = info
    return CURRENT.get().open(family, kind, protocol, str(address[0]))
