"""Customers' receivers in a process of their own: fast, and able to kill a worker at a chosen arrival."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from time import monotonic_ns
from typing import NamedTuple, cast

from tests.acceptance.elsewhere import Elsewhere


class Came(NamedTuple):
    """One request that arrived. They are handed out in the order of their arrival."""

    event: str
    path: str
    timestamp: int
    """That of its attempt, in seconds."""
    status: int
    """What it is answered."""
    at: int
    """Nanoseconds of the clock that all processes of a machine share."""


class Killing(NamedTuple):
    """A worker to be killed at the nth arrival from now on."""

    pid: int
    arrivals: int
    answered: bool
    """After the answer was written, or before there is one."""


class _Server:
    def __init__(self, line: Connection) -> None:
        self.line = line
        self.came: list[Came] = []
        self.ended = asyncio.Event()
        self._seen: Counter[str] = Counter()
        self._killing: Killing | None = None

    def command(self) -> None:
        match self.line.recv():
            case Killing() as killing:
                self._killing = killing
            case "came":
                self.line.send(self.came)
            case "count":
                self.line.send(len(self.came))
            case _:
                self.ended.set()

    def arrived(self, event: str, path: str, timestamp: int) -> Came:
        """Note it. An event whose id ends with `-f2` is answered 503 twice, then 200."""
        _, failing, times = event.rpartition("-f")
        self._seen[event] += 1
        status = 503 if failing and self._seen[event] <= int(times) else 200
        self.came.append(Came(event, path, timestamp, status, monotonic_ns()))
        if self._killing is not None:
            self._killing = self._killing._replace(arrivals=self._killing.arrivals - 1)
        self.kill(answered=False)
        return self.came[-1]

    def kill(self, *, answered: bool) -> None:
        """Kill, if this is the moment."""
        killing = self._killing
        if killing is not None and killing.arrivals <= 0 and killing.answered == answered:
            self._killing = None
            os.kill(killing.pid, signal.SIGKILL)
            self.line.send("killed")


class _Keeping(asyncio.Protocol):
    """A connection that is kept for as many requests as come, however they are cut into pieces."""

    def __init__(self, server: _Server) -> None:
        self._server = server
        self._bytes = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._bytes += data
        while True:
            head, end, rest = self._bytes.partition(b"\r\n\r\n")
            if not end:
                return
            first, *lines = head.decode("latin-1").split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
            length = int(headers["content-length"])
            if len(rest) < length:
                return
            self._bytes = rest[length:]
            event, timestamp = headers["webhook-id"], int(headers["webhook-timestamp"])
            came = self._server.arrived(event, first.split(" ")[1], timestamp)
            self._transport.write(b"HTTP/1.1 %d Said\r\nContent-Length: 0\r\n\r\n" % came.status)
            self._server.kill(answered=True)


def _serve(line: Connection) -> None:
    async def serve() -> None:
        server, loop = _Server(line), asyncio.get_running_loop()
        listening = await loop.create_server(lambda: _Keeping(server), "127.0.0.1", 0, backlog=1024)
        line.send(listening.sockets[0].getsockname()[1])
        loop.add_reader(line.fileno(), server.command)
        await server.ended.wait()
        loop.remove_reader(line.fileno())
        listening.close()

    asyncio.run(serve())


class Crowd:
    """The receivers, from here."""

    def __init__(self, elsewhere: Elsewhere, port: int) -> None:
        self._elsewhere = elsewhere
        self._port = port

    def url(self, endpoint_id: str) -> str:
        return f"http://127.0.0.1:{self._port}/{endpoint_id}"

    def came(self) -> list[Came]:
        return cast(list[Came], self._elsewhere.ask("came"))

    def count(self) -> int:
        """How many came."""
        return cast(int, self._elsewhere.ask("count"))

    def kill_at(self, killing: Killing) -> None:
        self._elsewhere.line.send(killing)

    def killed(self) -> bool:
        """Whether it was killed; told once."""
        return self._elsewhere.line.poll() and self._elsewhere.line.recv() == "killed"


@contextmanager
def crowd_elsewhere() -> Iterator[Crowd]:
    elsewhere = Elsewhere(_serve)
    try:
        yield Crowd(elsewhere, elsewhere.hear())
    finally:
        elsewhere.line.send(None)
        assert elsewhere.ended() == 0
