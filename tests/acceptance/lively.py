"""What tests of the live dispatcher share: clocks that they move, and waiting."""

from __future__ import annotations

import asyncio
import ctypes
import multiprocessing
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

from dispatcher.core.operations import Record
from dispatcher.core.policy import RetryPolicy
from dispatcher.delivery.transport import Answer, Request
from dispatcher.live import Dispatcher
from dispatcher.log.commit import Commit
from dispatcher.worker.outgoing import DEADLINE
from dispatcher.worker.worker import LEASE

OPEN = ("127.0.0.0/8",)
QUICK = RetryPolicy(max_attempts=3, waits=(10, 20), retryable=((0, 0), (429, 429), (500, 599)))
LEASE_SECONDS = DEADLINE + LEASE
PATIENCE_SECONDS = 20


def context() -> ForkServerContext:
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(
        [
            "tests.lives",
            "tests.acceptance.elsewhere",
            "tests.acceptance.crowd",
            "tests.acceptance.mob",
            "dispatcher.delivery.http",
        ]
    )
    return server


class MovedClock:
    """Stands still until it is moved, by one thread; processes can share it."""

    def __init__(self) -> None:
        # Without a lock: a process that is killed while it holds one would stop the time of all.
        self._now: ctypes.c_longlong = context().Value("q", time.time_ns() // 1_000_000, lock=False)

    @property
    def ms(self) -> int:
        return int(self._now.value)

    def now(self, last: int | None) -> int:
        return max(self.ms, last or 0)

    def move(self, seconds: float) -> None:
        self._now.value += round(seconds * 1000)


class HeldClock(MovedClock):
    """A transaction that asks for the time waits for it while this is held."""

    def __init__(self) -> None:
        super().__init__()
        self.reached, self._free = threading.Event(), threading.Event()
        self._free.set()

    def now(self, last: int | None) -> int:
        self.reached.set()
        assert self._free.wait(PATIENCE_SECONDS)
        return super().now(last)

    @contextmanager
    def held(self) -> Iterator[None]:
        self._free.clear()
        self.reached.clear()
        try:
            yield
        finally:
            self._free.set()


def eventually(condition: Callable[[], Any]) -> None:
    """Until a condition holds."""
    never, deadline = threading.Event(), time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it never came to be"
        never.wait(0.005)


def eventually_by(clock: MovedClock, condition: Callable[[], Any]) -> None:
    """Until a condition holds; what waits for its next try is given the time that it waits for."""

    def moved() -> Any:
        clock.move(0.5)
        return condition()

    eventually(moved)


def state(live: Dispatcher, event_id: str, endpoint_id: str = "shop") -> str:
    return str(live.status(endpoint_id, event_id)["state"])


def eventually_is(live: Dispatcher, event_id: str, wanted: str, attempts: int | None = None) -> None:
    """Until an event of the endpoint `shop` is in a state, after so many attempts."""

    def is_so() -> bool:
        status = live.status("shop", event_id)
        return status["state"] == wanted and attempts in (None, status["attempts"])

    eventually(is_so)


def entries(live: Dispatcher, event_id: str, endpoint_id: str = "shop") -> list[str]:
    return [entry["type"] for entry in live.history(endpoint_id, event_id)]


def attempts(live: Dispatcher, event_id: str, endpoint_id: str = "shop") -> list[tuple[int, str | None]]:
    """(status, error) of what was recorded."""
    recorded = [e for e in live.history(endpoint_id, event_id) if e["type"] == "AttemptRecorded"]
    return [(entry["data"]["status"], entry["data"].get("error")) for entry in recorded]


def enqueue(live: Dispatcher, *event_ids: str, endpoint_id: str = "shop") -> None:
    for event_id in event_ids:
        live.enqueue(endpoint_id, {"event": event_id}, event_id=event_id)


def bury(live: Dispatcher, *event_ids: str) -> None:
    """Let pending events of the endpoint `shop` die, without a request."""

    def work(commit: Commit) -> None:
        for event_id in event_ids:
            commit.apply(Record(f"default/shop/{event_id}", 404, commit.now))

    live._do(work)


def rows(database: Path, statement: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(statement).fetchall()


def log_length(database: Path) -> int:
    return int(rows(database, "SELECT count(*) FROM dispatcher_log")[0][0])


@contextmanager
def locked(database: Path) -> Iterator[None]:
    """Nobody else can write within the block."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


class Prompted:
    """A transport that answers when it is told to."""

    def __init__(self) -> None:
        self.asked, self.may_answer, self.answered = threading.Event(), threading.Event(), threading.Event()

    async def send(self, request: Request) -> Answer:
        self.asked.set()
        await asyncio.to_thread(self.may_answer.wait, PATIENCE_SECONDS)
        self.answered.set()
        return Answer(status=200)

    async def close(self) -> None:
        """There is nothing to let go of."""
