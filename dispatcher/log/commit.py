"""The one thread of a process that writes: pieces of work that wait are done in one transaction."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from itertools import chain
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Table

from dispatcher.core.entries import Entry
from dispatcher.core.operations import AnyOperation, Refusal
from dispatcher.core.state import State
from dispatcher.errors import DatabaseBusy, DispatcherError, Refused, StorageError
from dispatcher.log.append import Appender, Memory, appending
from dispatcher.log.clock import Clock
from dispatcher.log.open import Connection, Database
from dispatcher.log.repeating import Repeating
from dispatcher.log.rows import Row, driver
from dispatcher.log.watch import Watch

T = TypeVar("T")
LARGEST_BATCH = 200
GATHERING = 0.01
"""Seconds after an answer within which the callers it went to are waited for. Many events in one transaction
share its pages and its wait for the disk; measured with 32 callers, a third more events a second."""
logger = logging.getLogger("dispatcher.log")


class Commit:
    """What a piece of work may do within its transaction."""

    def __init__(self, log: Appender, now: int) -> None:
        self._log = log
        self.now = now
        """Its time, in the log's unit: never before the log's last entry."""

    @property
    def connection(self) -> Connection:
        return self._log.connection

    @property
    def state(self) -> State:
        return self._log.state

    def apply(self, operation: AnyOperation) -> list[Entry]:
        """Append what comes of an operation. Raises Refused, and then has changed nothing."""
        decided = self._log.apply(operation, self.now)
        if isinstance(decided, Refusal):
            raise Refused(decided.code)
        return decided

    def insert(self, table: Table, rows: Iterable[Row]) -> None:
        """Have rows written with the entries that an operation came to; `flush` makes them seen."""
        self._log.insert(table, rows)

    def flush(self, upto: int | None = None) -> None:
        """Bring the tables up to the state, or at least up to a position, for work that reads them."""
        if upto is None or upto > self._log.written_to:
            self._log.finish()

    def flush_endpoints(self) -> None:
        """`flush`, if an endpoint was registered, changed, disabled or enabled since."""
        if self._log.endpoints_changed:
            self._log.finish()

    def extent(self) -> tuple[int, int, int]:
        """Another one after every change: entries appended, rows to be written, rows written."""
        return self._log.state.position, self._log.beside, driver(self.connection).total_changes


First = Callable[[Commit, int | None], int | None]
"""Work that comes before whatever was submitted, in as many transactions as it wants: it is given what it
returned in the one before, None in the first, and returns None once it is done."""


class Piece(NamedTuple):
    """Something to do, whom to answer, and the deliveries that it will ask for."""

    work: Callable[[Commit], Any]
    future: Future[Any]
    about: Sequence[str]


class Committer:
    """Does pieces of work in the order in which they came, as many in one transaction as are waiting.

    A piece that raises a DispatcherError before it changed anything fails alone. Whatever else goes wrong
    undoes the whole transaction, and each of its pieces is done once more in one of its own: so a piece may
    run twice, but what it changed stays once, or not at all if it failed.
    """

    def __init__(self, database: Database, clock: Clock, first: First | None = None) -> None:
        self.database = database
        self._clock = clock
        self._first = first
        self._memory = Memory()
        self.listeners: list[Callable[[int], None]] = []
        """Called, in the committer's thread, with the last position after each transaction that appended."""
        self._waiting: deque[Piece] = deque()
        self._changed = threading.Condition()
        self._wanted = 1
        """How many waiting pieces wake the committer."""
        self._together = 1
        """How many callers there were at the latest transaction: answered by it, or waiting after it."""
        self._answered_at = 0.0
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="dispatcher-committer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Do what is waiting, then end."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join()

    def now(self) -> int:
        """The time that an entry would carry now, in the log's unit."""
        return self._clock.now(None)

    def beside(self, call: Callable[[], object], seconds: float, name: str) -> Repeating:
        """Have something called every so many seconds, beside the committer's own work. Stop it."""
        return Repeating(call, seconds, name)

    def watch(self) -> Watch:
        """Tells when other processes, or this one, have written. Close it."""
        return self.database.watch()

    def submit(self, work: Callable[[Commit], T], about: Sequence[str] = ()) -> Future[T]:
        """Have work done; the future is done once its transaction is durable.

        The deliveries that it is about are loaded together with those of other work. Until its turn comes
        the future can be cancelled, and nothing is done.
        """
        future: Future[T] = Future()
        with self._changed:
            if self._stopping:
                raise StorageError("this dispatcher is closed", "Open another one.")
            self._waiting.append(Piece(work, future, about))
            if len(self._waiting) >= self._wanted:
                self._changed.notify()
        return future

    def _run(self) -> None:
        while batch := self._take():
            self._do(batch)
            self._together = min(len(batch) + len(self._waiting), LARGEST_BATCH)
            self._answered_at = time.monotonic()

    def _take(self) -> list[Piece]:
        """What to do next; nothing when there is an end."""
        batch: list[Piece] = []
        with self._changed:
            while not batch:
                self._wanted = 1
                while not self._waiting and not self._stopping:
                    self._changed.wait()
                if not self._waiting:
                    break
                # Callers that were answered together come back together, if they are given a moment.
                self._wanted = self._together
                moment = self._answered_at + GATHERING - time.monotonic()
                if len(self._waiting) < self._wanted and moment > 0 and not self._stopping:
                    self._changed.wait(moment)
                taken = [self._waiting.popleft() for _ in range(min(len(self._waiting), LARGEST_BATCH))]
                # From here on it cannot be cancelled any more.
                batch = [piece for piece in taken if piece.future.set_running_or_notify_cancel()]
        return batch

    def _do(self, batch: list[Piece]) -> None:
        """Do a batch, and answer each of its pieces."""
        error = self._commit(batch)
        if error is None:
            return
        for piece in batch:
            # Alone, only the piece that caused it fails again. A database that stayed locked would only make
            # each of them wait as long.
            final = len(batch) == 1 or isinstance(error, DatabaseBusy)
            again = error if final else self._commit([piece])
            if again is not None:
                piece.future.set_exception(again)

    def _commit(self, batch: list[Piece]) -> BaseException | None:
        """Do a batch; None, or what undid all of it."""
        results: list[tuple[Any, DispatcherError | None]] = []
        first_at: int | None = None
        try:
            while True:
                with appending(self.database, "live", self._memory) as log:
                    begun_at, last = log.state.position, log.state.ts
                    now = self._clock.now(last)
                    # Whatever the clock says: entries never go back in time.
                    commit = Commit(log, now if last is None else max(now, last))
                    first_at = None if self._first is None else self._first(commit, first_at)
                    if first_at is None:
                        results = _work_on(batch, commit)
                    position = log.state.position
                if first_at is None:
                    break
                if position > begun_at:
                    self._tell(position)
        except BaseException as error:
            # Of any kind: whoever waits is answered, and the thread goes on.
            return error
        for piece, (result, failed) in zip(batch, results, strict=True):
            if failed is None:
                piece.future.set_result(result)
            else:
                piece.future.set_exception(failed)
        if position > begun_at:
            self._tell(position)
        return None

    def _tell(self, position: int) -> None:
        for listener in tuple(self.listeners):
            try:
                listener(position)
            except Exception:
                # All is committed and answered; the next ones need this thread.
                logger.exception("who is told of new entries failed")


def _work_on(batch: list[Piece], commit: Commit) -> list[tuple[Any, DispatcherError | None]]:
    """What came of each piece. Raises what left a change behind."""
    results: list[tuple[Any, DispatcherError | None]] = []
    commit.state.load_deliveries(chain.from_iterable(piece.about for piece in batch))
    for piece in batch:
        before = commit.extent()
        try:
            results.append((piece.work(commit), None))
        except DispatcherError as refused:
            if commit.extent() != before:
                raise
            results.append((None, refused))
    return results
