"""Rows of the log, inserted on the other core while more of them are made."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from typing import cast

from sqlalchemy import Connection

from dispatcher.core.merkle import Tile
from dispatcher.log.schema import log, tiles
from dispatcher.log.views import Row, insert

ROWS_PER_STEP = 4000
"""Rows inserted by one step of one statement.

The driver lets other threads run during a step, but then waits its turn of about 5 ms: one row at a time it
would wait 4,000 times as often. More rows than this would be more parameters than SQLite takes.
"""

_INSERT_ROW = insert(log)
_INSERT_ROWS = _INSERT_ROW + f", ({', '.join('?' * len(log.columns))})" * (ROWS_PER_STEP - 1)
_INSERT_TILE = insert(tiles)


class LogWriter:
    """Inserts entries and tiles in order; whole steps of rows go on beside what the caller does next."""

    def __init__(self, connection: Connection) -> None:
        self._connection = cast(sqlite3.Connection, connection.connection.dbapi_connection)
        # Only a serialised library may serve two threads on one connection.
        self._beside = sqlite3.threadsafety == 3
        self._thread: ThreadPoolExecutor | None = None
        self._under_way: Future[None] | None = None

    def insert(self, rows: Sequence[Row], completed: Sequence[Tile]) -> None:
        """Insert rows of the log and the tiles that they complete, after all that was inserted before."""
        self.wait()
        if len(rows) != ROWS_PER_STEP or not self._beside:
            self._insert(_INSERT_ROW, rows, completed)
            return
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "dispatcher-log-writer")
        self._under_way = self._thread.submit(
            self._insert, _INSERT_ROWS, [tuple(chain.from_iterable(rows))], completed
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

    def _insert(self, statement: str, rows: Sequence[Row], completed: Sequence[Tile]) -> None:
        self._connection.executemany(statement, rows)
        self._connection.executemany(_INSERT_TILE, completed)
