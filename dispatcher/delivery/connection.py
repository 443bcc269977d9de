"""The sockets of one attempt: where they lead, how much they read, and that they end with it."""

from __future__ import annotations

import contextlib
import errno
import socket
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from dispatcher.delivery.guard import Guard

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MAX_RECEIVED: Final = 256 * 1024
"""Bytes of one attempt taken off the wire: TLS, headers, interim answers and body together."""


class AddressBlocked(OSError):
    """No socket is made for this address."""

    def __init__(self) -> None:
        super().__init__(errno.EACCES, "address not allowed")


class Wire:
    """Everything that one attempt opens."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._sockets: list[socket.socket] = []
        self.blocked = False
        """Whether an address was refused."""
        self.left = MAX_RECEIVED
        """Bytes that may still be received."""

    def vet(self, address: str) -> None:
        """Raises AddressBlocked unless a socket may be connected to an address."""
        if not self._guard.allows(address):
            self.blocked = True
            raise AddressBlocked

    def open(self, family: int, kind: int, protocol: int, address: str) -> socket.socket:
        """A socket for an address that was just vetted, the last moment before it is connected."""
        self.vet(address)
        opened = _MeteredSocket(self, family, kind, protocol)
        self._sockets.append(opened)
        return opened

    def cut(self) -> None:
        """Ends every connection now.

        Closing alone would wait until a receiver that reads nothing has taken what is still to be sent.
        """
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


class _MeteredSocket(socket.socket):
    """Receives no more than its attempt may. An endless answer then costs its bytes, not its deadline."""

    def __init__(self, wire: Wire, family: int, kind: int, protocol: int) -> None:
        super().__init__(family, kind, protocol)
        self._wire = wire

    def recv(self, bufsize: int, flags: int = 0, /) -> bytes:
        data = super().recv(min(bufsize, self._allowance()), flags)
        self._wire.left -= len(data)
        return data

    # TLS reads this way.
    def recv_into(self, buffer: WriteableBuffer, nbytes: int = 0, flags: int = 0) -> int:
        room = nbytes or memoryview(buffer).nbytes
        count = super().recv_into(buffer, min(room, self._allowance()), flags)
        self._wire.left -= count
        return count

    def _allowance(self) -> int:
        if self._wire.left <= 0:
            raise OSError(errno.EMSGSIZE, "answer too large")
        return self._wire.left
