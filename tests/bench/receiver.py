"""A receiver in a process of its own, with as little HTTP as answers a client.

It keeps connections open, looks at nothing but where a request ends, and answers 200 without a body. Requests
to /hang are read, and never answered.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import re
import time
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, NamedTuple

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
PATIENCE_SECONDS = 600
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class Arrived(NamedTuple):
    """What the receiver tells once all that was expected is there."""

    at: float
    """Of time.monotonic, which is the same clock in all processes."""
    cpu_seconds: float
    """Of the receiver's, since it was told what to expect."""
    hanging: int
    """Requests that hang, since then."""


class Receiver:
    """The process, from the caller's side; ends with the block."""

    def __init__(self) -> None:
        spawning = multiprocessing.get_context("spawn")
        self._line, theirs = spawning.Pipe()
        self._process = spawning.Process(target=_receive, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()
        self.url = f"http://127.0.0.1:{self._hear()}"

    def __enter__(self) -> Receiver:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.join()

    def expect(self, requests: int) -> None:
        """From here on count so many requests that are answered."""
        self._line.send(requests)
        self._hear()

    def arrived(self) -> Arrived:
        """Wait, without any work, until they are there."""
        return Arrived(*self._hear())

    def _hear(self) -> Any:
        assert self._line.poll(PATIENCE_SECONDS), "the receiver waits in vain"
        return self._line.recv()


class _Count:
    def __init__(self, line: Connection) -> None:
        self._line = line
        self.left = self.hanging = 0
        self.cpu = 0.0

    def begin(self) -> None:
        self.left, self.hanging, self.cpu = self._line.recv(), 0, time.process_time()
        self._line.send(None)

    def one(self) -> None:
        self.left -= 1
        if self.left == 0:
            self._line.send((time.monotonic(), time.process_time() - self.cpu, self.hanging))


class _Http(asyncio.Protocol):
    def __init__(self, count: _Count) -> None:
        self._count = count
        self._seen = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._seen += data
        assert self._transport is not None
        while (head := self._seen.find(b"\r\n\r\n")) >= 0:
            length = _LENGTH.search(self._seen, 0, head)
            end = head + 4 + (int(length[1]) if length else 0)
            if len(self._seen) < end:
                return
            if self._seen.startswith(b"POST /hang"):
                self._count.hanging += 1
            else:
                self._count.one()
                self._transport.write(ANSWER)
            self._seen = self._seen[end:]


def _receive(line: Connection) -> None:
    asyncio.run(_serve(line))


async def _serve(line: Connection) -> None:
    loop, count = asyncio.get_running_loop(), _Count(line)
    server = await loop.create_server(lambda: _Http(count), "127.0.0.1", 0, backlog=1024)
    line.send(server.sockets[0].getsockname()[1])
    loop.add_reader(line.fileno(), count.begin)
    await server.serve_forever()
