"""A live log in a file, and a clock that says what it is told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection

from dispatcher.core.operations import AnyOperation, Enqueue, Refusal, Register
from dispatcher.core.policy import PROMISED
from dispatcher.log.append import appending
from dispatcher.log.open import Database


class SetClock:
    """Says what it was set to, be it before what it said before."""

    def __init__(self, *times: int) -> None:
        self._times = list(times)

    def now(self, last: int | None) -> int:
        return self._times.pop(0) if len(self._times) > 1 else self._times[0]


class LiveLog:
    """Operations in, one transaction each; the tables are left for the test to look at."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def do(self, *operations: AnyOperation, at: int = 0) -> None:
        with Database(self.file) as database, appending(database, "live") as log:
            for operation in operations:
                assert not isinstance(log.apply(operation, at), Refusal), operation

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        with Database(self.file) as database, database.write() as connection:
            yield connection


def registered(endpoint_id: str, *, concurrency: int = 8, unordered: bool = False) -> Register:
    return Register(
        endpoint_id=endpoint_id,
        url="https://shop.example",
        policy=PROMISED,
        concurrency=concurrency,
        order="none" if unordered else "strict",
    )


def queued(endpoint_id: str, *names: str, key: str | None = None) -> list[AnyOperation]:
    return [Enqueue(endpoint_id, f"{endpoint_id}/{name}", None, key) for name in names]
