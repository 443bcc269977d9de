"""Workers and readers in processes of their own."""

from __future__ import annotations

import logging
import os
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, NoReturn

from dispatcher.delivery.transport import Answer, Request
from dispatcher.live import Dispatcher
from tests.acceptance.lively import OPEN, PATIENCE_SECONDS, MovedClock, context


class KilledBeforeSending:
    """A transport that ends its process when it is to send."""

    async def send(self, request: Request) -> Answer:
        _die()

    async def close(self) -> None:
        """There is nothing to let go of."""


def _die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("it survived")


class Telling(logging.Handler):
    """Tells the other end of a line what is logged."""

    def __init__(self, line: Connection) -> None:
        super().__init__(logging.WARNING)
        self._line = line

    def emit(self, record: logging.LogRecord) -> None:
        self._line.send(record.getMessage())


def _work(
    database: Path, clock: MovedClock, sends: bool, grace: float, name: str, tells: bool, line: Connection
) -> None:
    transport = None if sends else KilledBeforeSending()
    if tells:
        logging.getLogger("dispatcher").addHandler(Telling(line))
    with (
        Dispatcher(database, clock=clock, open_networks=OPEN, transport=transport) as live,
        live.worker(name=name, grace=grace),
    ):
        line.send("ready")
        line.recv()
    line.send("stopped")


def _read(database: Path, line: Connection) -> None:
    """Say, for each delivery named, how many rows another process sees of it and of its payload."""
    while True:
        delivery_id = line.recv()
        if delivery_id is None:
            return
        with closing(sqlite3.connect(database)) as connection:
            statement = (
                "SELECT count(*) FROM dispatcher_deliveries AS d JOIN dispatcher_payloads AS p"
                " ON p.n = d.position JOIN dispatcher_payload_keys AS k ON k.n = p.n WHERE d.delivery_id = ?"
            )
            line.send(connection.execute(statement, (delivery_id,)).fetchone()[0])


class Elsewhere:
    """A process with one end of a line."""

    def __init__(self, target: Callable[..., None], *arguments: Any) -> None:
        self.line, theirs = context().Pipe()
        self.process: ForkServerProcess = context().Process(
            target=target,
            args=(*arguments, theirs),
            # A test that fails leaves nobody behind.
            daemon=True,
        )
        self.process.start()
        theirs.close()

    def hear(self) -> Any:
        assert self.line.poll(PATIENCE_SECONDS), "it never spoke"
        return self.line.recv()

    def ask(self, question: Any) -> Any:
        self.line.send(question)
        return self.hear()

    def rest(self) -> list[Any]:
        """What it still said before it ended."""
        said = []
        with suppress(EOFError, ConnectionResetError):
            while self.line.poll(PATIENCE_SECONDS):
                said.append(self.line.recv())
        return said

    def ended(self) -> int | None:
        self.process.join(PATIENCE_SECONDS)
        self.line.close()
        return self.process.exitcode

    def kill(self) -> None:
        """SIGKILL it; it has nothing more to say."""
        self.process.kill()
        assert self.ended() == -signal.SIGKILL


def worker_elsewhere(
    database: Path,
    clock: MovedClock,
    *,
    sends: bool = True,
    grace: float = 10.0,
    name: str = "worker",
    tells: bool = False,
) -> Elsewhere:
    """A dispatcher with a worker in a process of its own, by the same name unless told otherwise.

    One that tells sends the warnings that it logs.
    """
    worker = Elsewhere(_work, database, clock, sends, grace, name, tells)
    if sends:
        assert worker.hear() == "ready"
    return worker


def reader_elsewhere(database: Path) -> Elsewhere:
    return Elsewhere(_read, database)


def _enqueue(database: Path, clock: MovedClock, line: Connection) -> None:
    """Enqueue each (endpoint id, event id) told, and say each id when it was answered."""
    with Dispatcher(database, clock=clock) as live:
        while (pairs := line.recv()) is not None:
            for endpoint_id, event_id in pairs:
                line.send(live.enqueue(endpoint_id, event_id, event_id=event_id))


def enqueuer_elsewhere(database: Path, clock: MovedClock) -> Elsewhere:
    return Elsewhere(_enqueue, database, clock)
