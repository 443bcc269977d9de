"""Rows of the log, inserted on the other core while more of them are made."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain

from sqlalchemy import Connection

from dispatcher.core.merkle import Tile
from dispatcher.log.rows import Row, driver, insert, insert_rows
from dispatcher.log.schema import log, tiles

ROWS_PER_STEP = 4000
"""Rows inserted by one step of one statement.

The driver lets other threads run during a step, but then waits its turn of about 5 ms: one row at a time it
would wait 4,000 times as often. More rows than this would be more parameters than SQLite takes.
"""

_INSERT_ROWS = insert(log, ROWS_PER_STEP)


class LogWriter:
    """Inserts entries and tiles in order; whole steps of rows go on beside what the caller does next."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._driver = driver(connection)
        # Only a serialised library may serve two threads on one connection.
        self._beside = sqlite3.threadsafety == 3
        self._thread: ThreadPoolExecutor | None = None
        self._under_way: Future[None] | None = None

    def insert(self, rows: Sequence[Row], completed: Sequence[Tile]) -> None:
        """Insert rows of the log and the tiles that they complete, after all that was inserted before."""
        self.wait()
        if len(rows) != ROWS_PER_STEP or not self._beside:
            insert_rows(self._connection, log, rows)
            insert_rows(self._connection, tiles, completed)
            return
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "dispatcher-log-writer")
        self._under_way = self._thread.submit(
            self._insert_beside, tuple(chain.from_iterable(rows)), completed
        )

    def wait(self) -> None:
        """Until all is inserted. Raises what the database said of it."""
        if self._under_way is not None:
            under_way, self._under_way = self._under_way, None
            under_way.result()

    def close(self) -> None:
        """Leave the connection to its owner, whatever became of the rows."""
        if self._thread is not None:
            self._thread.shutdown()

    def _insert_beside(self, step: Row, completed: Sequence[Tile]) -> None:
        self._driver.execute(_INSERT_ROWS, step)
        self._driver.executemany(insert(tiles), completed)
