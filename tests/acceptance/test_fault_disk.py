"""No room on the disk, or no leave to write, while events come in and go out."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dispatcher.errors import DatabaseFull, DatabaseReadOnly, StorageError
from dispatcher.live import Dispatcher
from dispatcher.log.open import Database
from tests.acceptance.lively import (
    OPEN,
    MovedClock,
    attempts,
    enqueue,
    eventually,
    eventually_by,
    eventually_is,
    rows,
    state,
)
from tests.acceptance.receiver import Receiver
from tests.acceptance.reckoning import assert_conserved
from tests.ramdisk import ramdisk, small_disk

THREADS = 4
PENDING = "SELECT count(*) FROM dispatcher_deliveries WHERE state = 'pending'"


@pytest.fixture
def disk() -> Iterator[Path]:
    """A file system of 10 MiB: room for SQLite's journal, which is emptied when it has 4 MiB."""
    with ramdisk() as folder, small_disk(folder, 10 * 1024) as place:
        yield place


def _enqueue_until_full(live: Dispatcher, thread: int) -> tuple[list[str], StorageError]:
    """What was accepted, and what was said then."""
    accepted: list[str] = []
    while True:
        try:
            accepted.append(live.enqueue("shop", [thread, "x" * 2000]))
        except StorageError as error:
            return accepted, error


def test_when_the_disk_is_full_each_caller_is_told_and_what_was_accepted_is_delivered_later(
    disk: Path, clock: MovedClock, receiver: Receiver
) -> None:
    """The worker goes on by itself once there is room."""
    file, reserve = disk / "live.db", disk / "reserve"
    reserve.write_bytes(bytes(6 * 1024 * 1024))
    with Dispatcher(file, clock=clock, open_networks=OPEN) as live:
        live.register("shop", receiver.url, order="none")
        with live.worker():
            with ThreadPoolExecutor(THREADS) as pool:
                told = list(pool.map(lambda thread: _enqueue_until_full(live, thread), range(THREADS)))
            for _, error in told:
                assert isinstance(error, DatabaseFull)
                assert "make room" in error.remedy
            reserve.unlink()
            accepted = [event_id for ids, _ in told for event_id in ids]
            accepted.append(live.enqueue("shop", "afterwards"))
            eventually_by(clock, lambda: rows(file, PENDING) == [(0,)])
        assert len(accepted) > THREADS
        assert set(receiver.events) == set(accepted)
        for event_id in accepted:
            *others, last = attempts(live, event_id)
            assert last == (200, None)
            assert set(others) <= {(0, "lost")}
        assert_conserved(file, delivered=len(accepted))


class Permission:
    """To write to the database of a dispatcher: taken and given back while that runs."""

    def __init__(self, patching: pytest.MonkeyPatch) -> None:
        self._connections: list[sqlite3.Connection] = []
        self.asked: list[str] = []
        """Every statement since it was taken."""
        connect = Database._connect

        def kept(database: Database) -> sqlite3.Connection:
            connection = connect(database)
            if database._access != "read":
                self._connections.append(connection)
            return connection

        patching.setattr(Database, "_connect", kept)

    def take(self) -> None:
        self._set("ON")
        for connection in self._connections:
            connection.set_trace_callback(self.asked.append)

    def give(self) -> None:
        self._set("OFF")

    def _set(self, how: str) -> None:
        for connection in self._connections:
            connection.execute(f"PRAGMA query_only = {how}")


@pytest.fixture
def permission(monkeypatch: pytest.MonkeyPatch) -> Permission:
    return Permission(monkeypatch)


def test_what_may_not_be_written_is_said_to_each_caller_and_the_worker_goes_on_afterwards(
    permission: Permission, live: Dispatcher, receiver: Receiver
) -> None:
    live.register("shop", receiver.url)
    with live.worker():
        enqueue(live, "before")
        eventually_is(live, "before", "delivered")
        permission.take()
        for call in (lambda: live.enqueue("shop", 1, event_id="one"), lambda: live.disable("shop")):
            with pytest.raises(DatabaseReadOnly) as refused:
                call()
            assert "write access" in refused.value.remedy
        assert state(live, "before") == "delivered", "reading goes on"
        permission.give()
        enqueue(live, "one")
        eventually_is(live, "one", "delivered", attempts=1)
    assert receiver.events == ["before", "one"]


def test_an_answer_that_comes_while_nothing_can_be_written_is_recorded_once_it_can(
    permission: Permission, live: Dispatcher, receiver: Receiver, clock: MovedClock
) -> None:
    live.register("shop", receiver.url)
    with live.worker():
        with receiver.holding():
            enqueue(live, "one")
            receiver.next()
            permission.take()
        before = len(permission.asked)
        eventually(lambda: len(permission.asked) >= before + 3)
        permission.give()
        eventually_by(clock, lambda: state(live, "one") == "delivered")
    assert attempts(live, "one") == [(200, None)]
    assert receiver.events == ["one"]
