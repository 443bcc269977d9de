"""A committer at work, and what it is given to do."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import closing, contextmanager

from dispatcher.core.operations import Enqueue
from dispatcher.log.clock import Clock
from dispatcher.log.commit import Commit, Committer
from dispatcher.log.open import Database
from dispatcher.log.read import rows
from tests.unit.log.live_log import LiveLog, SetClock

PATIENCE = 30
Work = Callable[[Commit], object]


@contextmanager
def running(log: LiveLog, clock: Clock | None = None) -> Iterator[Committer]:
    with closing(Database(log.file)) as database:
        committer = Committer(database, clock or SetClock(0))
        committer.start()
        try:
            yield committer
        finally:
            committer.stop()


@contextmanager
def held(committer: Committer) -> Iterator[None]:
    """For the block the committer is at work: what is submitted waits for the transaction after."""
    begun, go_on = threading.Event(), threading.Event()

    def work(commit: Commit) -> None:
        begun.set()
        assert go_on.wait(PATIENCE)

    holding = committer.submit(work)
    assert begun.wait(PATIENCE)
    try:
        yield
    finally:
        go_on.set()
    holding.result(PATIENCE)


def together(committer: Committer, *works: Work) -> list[Future[object]]:
    """Have these done in one transaction, in this order."""
    with held(committer):
        futures = [committer.submit(work) for work in works]
    wait(futures, PATIENCE)
    return futures


def enqueue(name: str) -> Work:
    def work(commit: Commit) -> int:
        commit.apply(Enqueue("t/shop", f"t/shop/{name}"))
        return commit.state.position

    return work


def ids(log: LiveLog) -> list[str]:
    with Database(log.file, "read") as database, database.read() as connection:
        return [
            row[0].rpartition("/")[2]
            for batch in rows(connection, columns="delivery_id")
            for row in batch
            if row[0]
        ]


def times(log: LiveLog) -> list[int]:
    with Database(log.file, "read") as database, database.read() as connection:
        return [row[0] for batch in rows(connection, columns="ts") for row in batch]
