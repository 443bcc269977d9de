"""Live databases to measure with, built once and copied for each round; and workers in other processes."""

from __future__ import annotations

import multiprocessing
import shutil
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from dispatcher import Dispatcher
from dispatcher.log.seal import Keyring
from tests.bench.measure import durable

KEYRING = Keyring([bytes(range(32))])
OPEN = ("127.0.0.0/8",)
SECRET = "whsec_" + "bWVhc3VyZWQgd2l0aCB0aGlzIHNlY3JldCE="
PAYLOAD = b'{"measured":"' + b"x" * 1009 + b'"}'
"""1 KiB of JSON."""
AT_ONCE = 1000
"""Events enqueued in one transaction while a database is built."""


def opened(database: Path, **options: Any) -> Dispatcher:
    """With a master key, and leave to call this machine."""
    return Dispatcher(database, keyring=KEYRING, open_networks=OPEN, **options)


def build(database: Path, urls: Mapping[str, str], events: Sequence[str]) -> None:
    """Endpoints by their names, then one event of 1 KiB for each name in `events`; durable, nothing sent."""
    with opened(database) as live:
        for name, url in urls.items():
            live.register(name, url, secret=SECRET)
        for n in range(0, len(events), AT_ONCE):
            live.enqueue_many([(name, PAYLOAD) for name in events[n : n + AT_ONCE]])
    durable(database)


def fresh(built: Path, copy: Path) -> Path:
    """A copy of a database that nobody has open, on disk."""
    shutil.copyfile(built, copy)
    durable(copy)
    return copy


def pending(database: Path, among: str = "%") -> int:
    """Events not yet recorded as delivered or dead, of endpoints that are LIKE this."""
    with closing(sqlite3.connect(database)) as connection:
        statement = "SELECT coalesce(sum(pending), 0) FROM dispatcher_endpoints WHERE endpoint_id LIKE ?"
        return int(connection.execute(statement, (f"default/{among}",)).fetchone()[0])


def until_recorded(database: Path, among: str = "%") -> float:
    """Wait until nothing is pending any more; the time at which that was durable, of time.monotonic."""
    while pending(database, among):
        time.sleep(0.002)
    return time.monotonic()


@contextmanager
def worker_elsewhere(database: Path) -> Iterator[Connection]:
    """A worker in a process of its own, for a block. It answers whatever it is sent with its CPU seconds."""
    spawning = multiprocessing.get_context("spawn")
    line, theirs = spawning.Pipe()
    process = spawning.Process(target=_work, args=(database, theirs), daemon=True)
    process.start()
    theirs.close()
    line.recv()
    try:
        yield line
    finally:
        line.close()
        process.join()


def _work(database: Path, line: Connection) -> None:
    with opened(database) as live, live.worker():
        line.send(time.process_time())
        with suppress(EOFError):
            while True:
                line.recv()
                line.send(time.process_time())
