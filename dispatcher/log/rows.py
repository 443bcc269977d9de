"""Many rows with each step of a statement.

The driver lets other threads run during a step, and then has to wait for its turn: beside a busy thread that
takes many times as long as the step. And a statement for each row costs half as much again in any case.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, cast

import msgspec
from sqlalchemy import Connection, Table

Row = tuple[Any, ...]

ROWS_PER_STEP = (64, 16, 4, 1)
"""Few sizes, so that their statements stay prepared."""


def driver(connection: Connection) -> sqlite3.Connection:
    """The driver's own connection: for a small statement it takes a fifth of the time."""
    return cast(sqlite3.Connection, connection.connection.dbapi_connection)


@lru_cache(maxsize=64)
def insert(table: Table, rows: int = 1) -> str:
    """INSERT with one placeholder for each column: given to the driver as it is, with rows of tuples."""
    names = [c.name for c in table.columns]
    return f"INSERT INTO {table.name} ({', '.join(names)}) VALUES {_marks(len(names), rows)}"


def insert_rows(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    for size, steps in _steps(rows):
        driver(connection).executemany(insert(table, size), steps)


def replace_rows(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Insert rows, each in the place of the one with its key."""
    for size, steps in _steps(rows):
        driver(connection).executemany(insert(table, size).replace("INSERT", "INSERT OR REPLACE", 1), steps)


def update_rows(connection: Connection, table: Table, columns: Sequence[str], rows: Sequence[Row]) -> None:
    """Set columns; each row begins with the key, which is the table's first column."""
    for size, steps in _steps(rows):
        driver(connection).executemany(_update(table, tuple(columns), size), steps)


def delete_rows(connection: Connection, table: Table, keys: Sequence[Row]) -> None:
    """Delete by the table's first columns."""
    for size, steps in _steps(keys):
        driver(connection).executemany(_delete(table, len(keys[0]), size), steps)


def fetch_at_once(
    connection: Connection, columns: str, rest: str, parameters: Row | dict[str, Any]
) -> list[Any]:
    """The rows of SELECT columns FROM rest, as lists, in one step. Of a blob ask for the hex()."""
    statement = f"SELECT json_group_array(json_array({columns})) FROM {rest}"
    found: list[Any] = msgspec.json.decode(driver(connection).execute(statement, parameters).fetchone()[0])
    return found


def _steps(rows: Sequence[Row]) -> Iterator[tuple[int, list[Row]]]:
    """Rows cut into steps: how many rows each has, and the parameters of each."""
    start = 0
    for size in ROWS_PER_STEP:
        end = start + (len(rows) - start) // size * size
        if end > start:
            yield size, [tuple(chain.from_iterable(rows[n : n + size])) for n in range(start, end, size)]
        start = end


@lru_cache(maxsize=64)
def _update(table: Table, columns: tuple[str, ...], rows: int) -> str:
    key = next(iter(table.columns)).name
    changes = ", ".join(f"{name} = given.column{n}" for n, name in enumerate(columns, 2))
    return (
        f"UPDATE {table.name} SET {changes} FROM (VALUES {_marks(len(columns) + 1, rows)}) AS given"
        f" WHERE {table.name}.{key} = given.column1"
    )


@lru_cache(maxsize=64)
def _delete(table: Table, columns: int, rows: int) -> str:
    names = ", ".join(c.name for c in list(table.columns)[:columns])
    return f"DELETE FROM {table.name} WHERE ({names}) IN (VALUES {_marks(columns, rows)})"


def _marks(columns: int, rows: int) -> str:
    return ", ".join([f"({', '.join('?' * columns)})"] * rows)
