"""Receivers on 127.0.0.1: honest ones, and scripts for those that are not."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Self

from dispatcher.delivery.guard import Guard
from dispatcher.delivery.http import HttpTransport
from dispatcher.delivery.resolve import NameNotFound
from dispatcher.delivery.transport import Answer, Method, Request

OPEN = Guard(["127.0.0.0/8", "::1/128"])
PATIENT = 5.0
"""Seconds; a deadline that no passing test reaches."""
BRIEF = 0.3
"""Seconds; a deadline that the test waits for."""


class Received:
    """One request as it came over the wire."""

    def __init__(self, head: bytes, body: bytes) -> None:
        lines = head.decode("latin-1").split("\r\n")
        self.method, self.path, _ = lines[0].split(" ")
        self.header_lines = [line.partition(": ")[::2] for line in lines[1:] if line]
        self.headers = {name.lower(): value for name, value in self.header_lines}
        self.body = body


class Connection:
    """One accepted connection, for a script to use."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def request(self) -> Received:
        head = await self.reader.readuntil(b"\r\n\r\n")
        received = Received(head, b"")
        received.body = await self.reader.readexactly(int(received.headers.get("content-length", "0")))
        return received

    async def write(self, data: bytes) -> None:
        """Raises ConnectionResetError once the other side has left."""
        self.writer.write(data)
        await self.writer.drain()
        # Over TLS drain neither raises nor yields: without this an endless script would never end.
        await asyncio.sleep(0)
        if self.reader.at_eof() or self.writer.is_closing():
            raise ConnectionResetError

    async def dribble(self, data: bytes, seconds: float = 0.01) -> None:
        """A byte at a time, each after a pause that only the other side's leaving cuts short."""
        for byte in data:
            await self.write(bytes([byte]))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.reader.read(), seconds)

    async def until_left(self) -> None:
        """Returns once the other side has closed."""
        while await self.reader.read(65536):
            pass

    def reset(self) -> None:
        """Closes with a RST."""
        import socket
        import struct

        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


Script = Callable[[Connection], Awaitable[None]]


class Receiver:
    """A server that runs a script on every connection. Counts them, and knows when each has ended."""

    def __init__(self, script: Script, *, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> None:
        self._script, self._tls, self._host = script, tls, host
        self.connections = 0
        self.left = asyncio.Event()
        """Set once a script has ended, whoever ended it."""
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, self._host, 0, ssl=self._tls)
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def url(self, path: str = "/", *, host: str | None = None, scheme: str = "http") -> str:
        own = f"[{self._host}]" if ":" in self._host else self._host
        return f"{scheme}://{host or own}:{self.port}{path}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._script(Connection(reader, writer))
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self.left.set()
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
            self._tasks.discard(task)


def answering(data: bytes, *, into: list[Received] | None = None) -> Script:
    """Reads the request, answers, closes."""

    async def script(connection: Connection) -> None:
        received = await connection.request()
        if into is not None:
            into.append(received)
        await connection.write(data)

    return script


def response(status: int, body: bytes = b"", headers: Sequence[str] = ()) -> bytes:
    lines = [f"HTTP/1.1 {status} Whatever", *headers, f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


def request(
    url: str,
    *,
    method: Method = "POST",
    headers: Sequence[tuple[str, str]] = (),
    body: bytes = b"{}",
    deadline: float = PATIENT,
) -> Request:
    return Request(method=method, url=url, headers=tuple(headers), body=body, deadline=deadline)


class Names:
    """A resolver that knows what it is told; a name with None hangs until it is cancelled."""

    def __init__(self, names: dict[str, Sequence[str] | None]) -> None:
        self.names = names
        self.asked: list[str] = []
        self.cancelled = asyncio.Event()

    async def addresses(self, host: str) -> Sequence[str]:
        self.asked.append(host)
        if host not in self.names:
            raise NameNotFound
        addresses = self.names[host]
        if addresses is not None:
            return addresses
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled.set()
        raise AssertionError

    async def close(self) -> None:
        pass


async def send_once(sent: Request, **options: object) -> Answer:
    """One request over a transport of its own; with 127.0.0.0/8 open unless told otherwise."""
    transport = HttpTransport(**{"guard": OPEN, **options})  # type: ignore[arg-type]
    try:
        return await transport.send(sent)
    finally:
        await transport.close()


def exchange(script: Script, *, path: str = "/", deadline: float = PATIENT) -> Answer:
    """What becomes of one request to a receiver with this script, once the receiver saw the end of it."""

    async def run() -> Answer:
        async with Receiver(script) as receiver:
            answer = await send_once(request(receiver.url(path), deadline=deadline))
            await receiver.left.wait()
            return answer

    return asyncio.run(run())
