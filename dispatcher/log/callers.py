"""An application's own connection, to accept events on within the transaction that it is in."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from dispatcher.errors import DatabaseBusy, Refused
from dispatcher.log.storage_errors import storage_errors

LEGACY_CONTROL = -1
"""Of `sqlite3.Connection.autocommit`: the isolation level decides. Python before 3.12 knows nothing else."""

AGAIN = (
    "Roll this transaction back and run it again; begin it with BEGIN IMMEDIATE if it reads before it writes."
)


@contextmanager
def borrowed(connection: Any, file: str) -> Iterator[Any]:
    """A DB-API cursor within the transaction of a caller's connection, which begins one if it has to.

    The connection is one of SQLAlchemy (or its Session), of Django, or the driver's own. It is never
    committed or rolled back here. Raises Refused: `other_database` when it leads elsewhere than to `file`,
    `no_transaction` when each of its statements would be committed by itself; and StorageError.
    """
    # The driver's cursor, whoever wraps it: wrappers write parameters into logs and errors, and one is a key.
    try:
        with storage_errors(file):
            driver = _driver_of(connection)
            with closing(driver.cursor()) as cursor:
                if isinstance(cursor, sqlite3.Cursor):
                    cursor.row_factory = None
                _check(driver, cursor, file)
                yield cursor
    except DatabaseBusy as busy:
        raise DatabaseBusy(
            f"{file} was locked by another connection, or written by one meanwhile", AGAIN
        ) from busy


def _driver_of(connection: Any) -> Any:
    """What has a DB-API cursor, in a transaction as far as the wrapper has its own idea of one."""
    if hasattr(connection, "run_sync"):
        raise Refused("async_connection", "a connection of asyncio is not used from here")
    if hasattr(connection, "exec_driver_sql"):
        # SQLAlchemy begins, and so will commit, only when it is told of a statement.
        connection.exec_driver_sql("PRAGMA database_list")
        return connection.connection
    if hasattr(connection, "get_bind"):
        return _driver_of(connection.connection())
    if hasattr(connection, "validate_no_broken_transaction"):
        connection.ensure_connection()
        connection.validate_no_broken_transaction()
        return connection.connection
    if hasattr(connection, "cursor"):
        return connection
    raise Refused("invalid_argument", "connection is none that is known")


def _check(driver: Any, cursor: Any, file: str) -> None:
    # This takes no lock and reads nothing: a transaction that only reads yet could not write any more once
    # somebody else has, so that the first thing it does here has to be to write.
    cursor.execute("PRAGMA database_list")
    (main,) = (os.fsdecode(path or "") for _, name, path in cursor.fetchall() if name in ("main", b"main"))
    if main != file and not _is_same(main, file):
        raise Refused("other_database", "the connection is to another database")
    found = getattr(driver, "driver_connection", driver)
    control = getattr(found, "autocommit", LEGACY_CONTROL)
    begins = control == LEGACY_CONTROL and found.isolation_level is not None
    if not begins and not found.in_transaction:
        raise Refused("no_transaction", "the connection is in no transaction")


def _is_same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False
