"""Receivers in a process of their own that are broken, or mean harm."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from functools import cache
from multiprocessing.connection import Connection as Line
from typing import NamedTuple, cast

from tests.acceptance.elsewhere import Elsewhere
from tests.unit.delivery.receivers import Connection, Receiver, Script, response

SLOWLY = 1.0
"""Seconds for each byte."""


async def _silent(connection: Connection) -> None:
    await connection.until_left()


async def _slow_head(connection: Connection) -> None:
    await connection.request()
    await connection.dribble(b"HTTP/1.1 200 OK\r\n" + b"X-A: b\r\n" * 900, SLOWLY)


async def _slow_body(connection: Connection) -> None:
    await connection.request()
    await connection.write(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n")
    await connection.dribble(b"x" * 900, SLOWLY)


def _endless(first: bytes, then: bytes) -> Script:
    async def script(connection: Connection) -> None:
        await connection.request()
        await connection.write(first)
        while True:
            await connection.write(then)

    return script


@cache
def _packed() -> bytes:
    """64 MiB, in as many KiB."""
    return response(200, gzip.compress(bytes(64 << 20)), ["Content-Encoding: gzip"])


async def _bomb(connection: Connection) -> None:
    await connection.request()
    await connection.write(_packed())


async def _reset(connection: Connection) -> None:
    await connection.request()
    await connection.write(b"HTTP/1.1 2")
    connection.reset()


def _telling(make: Callable[[bytes], bytes]) -> Script:
    """Sends back what it was sent."""

    async def script(connection: Connection) -> None:
        head = await connection.reader.readuntil(b"\r\n\r\n")
        await connection.write(make(head + await connection.reader.read(65536)))

    return script


async def _no_tls(connection: Connection) -> None:
    await connection.reader.read(1)
    await connection.write(b"HTTP/1.1 400 Bad\r\n\r\n")


PINNING: dict[str, Callable[[Connection], Awaitable[None]]] = {
    "silent": _silent,
    "slow-head": _slow_head,
    "slow-body": _slow_body,
}
"""These keep a request until its deadline."""
QUICK: dict[str, Script] = {
    "endless-body": _endless(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 65536),
    "bomb": _bomb,
    "interim": _endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 999),
    "reset": _reset,
    "garbage": _telling(lambda sent: sent),
    "telling": _telling(lambda sent: response(500, sent)),
    "tls": _no_tls,
}
"""These end it before."""


class Count(NamedTuple):
    """The connections to one of them."""

    made: int
    ended: int


def _serve(line: Line) -> None:
    counts = {kind: Count(0, 0) for kind in (*PINNING, *QUICK)}

    def counted(kind: str, script: Script) -> Script:
        async def counting(connection: Connection) -> None:
            counts[kind] = counts[kind]._replace(made=counts[kind].made + 1)
            try:
                await script(connection)
            finally:
                counts[kind] = counts[kind]._replace(ended=counts[kind].ended + 1)

        return counting

    async def serve() -> None:
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        # Scripts that are cut short at the end have nothing to report.
        loop.set_exception_handler(lambda loop, context: None)

        def command() -> None:
            if line.recv() == "counts":
                line.send(counts)
            else:
                ended.set()

        async with AsyncExitStack() as stack:
            ports = {}
            for kind, script in {**PINNING, **QUICK}.items():
                ports[kind] = (await stack.enter_async_context(Receiver(counted(kind, script)))).port
            line.send(ports)
            loop.add_reader(line.fileno(), command)
            await ended.wait()
            loop.remove_reader(line.fileno())

    asyncio.run(serve())


class Mob:
    """The receivers, from here."""

    def __init__(self, elsewhere: Elsewhere) -> None:
        self._elsewhere = elsewhere
        self._ports = cast(dict[str, int], elsewhere.hear())

    def address(self, kind: str) -> str:
        return f"127.0.0.1:{self._ports[kind]}"

    def url(self, kind: str) -> str:
        return f"http{'s' if kind == 'tls' else ''}://{self.address(kind)}/"

    def counts(self) -> dict[str, Count]:
        return cast(dict[str, Count], self._elsewhere.ask("counts"))


@contextmanager
def mob_elsewhere() -> Iterator[Mob]:
    elsewhere = Elsewhere(_serve)
    try:
        yield Mob(elsewhere)
    finally:
        elsewhere.line.send(None)
        assert elsewhere.ended() == 0
