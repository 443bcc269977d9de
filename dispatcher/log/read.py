"""Reading the log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Connection

from dispatcher.core.entries import Entry, Kind, LogOpened
from dispatcher.core.merkle import TILE_LEVELS, Frontier, Tile, format_head
from dispatcher.core.upcast import UnknownEntry, decode_body
from dispatcher.errors import LogCorrupt

ROWS_PER_FETCH = 1000

COLUMNS = "position, ts, type, version, endpoint_id, delivery_id, data, hash"
_EVERY_ROW = f"SELECT {COLUMNS} FROM dispatcher_log"


class LogRow(NamedTuple):
    """A row of dispatcher_log, as it lies there."""

    position: int
    ts: int
    type: str
    version: int
    endpoint_id: str | None
    delivery_id: str | None
    data: str
    hash: bytes


def last_entry(connection: Connection) -> tuple[int, int | None]:
    """(position, ts) of the log's last entry; (0, None) when it is empty."""
    row = connection.exec_driver_sql(
        "SELECT position, ts FROM dispatcher_log ORDER BY position DESC LIMIT 1"
    ).first()
    return (0, None) if row is None else (row[0], row[1])


def first_since(connection: Connection, ts: int) -> int:
    """The position of the first entry at or after a time: the next free one when there is none yet."""
    low, high = base(connection) + 1, last_entry(connection)[0] + 1
    while low < high:
        middle = (low + high) // 2
        found = connection.exec_driver_sql("SELECT ts FROM dispatcher_log WHERE position = ?", (middle,))
        if found.scalar_one() < ts:
            low = middle + 1
        else:
            high = middle
    return low


def base(connection: Connection) -> int:
    """The position after which this database holds the log; 0 when it holds all of it."""
    first = connection.exec_driver_sql("SELECT min(position) FROM dispatcher_log").scalar()
    return 0 if first is None else first - 1


def first_gap(connection: Connection) -> int:
    """The first position at which no entry stands, in a log that has a gap."""
    numbered = (
        "SELECT position, row_number() OVER (ORDER BY position) AS n FROM dispatcher_log WHERE position > 0"
    )
    found = connection.exec_driver_sql(f"SELECT n FROM ({numbered}) WHERE position <> n LIMIT 1")
    return int(found.scalar_one())


def log_kind(connection: Connection) -> Kind | None:
    """simulated or live; None while the log is empty."""
    row = connection.exec_driver_sql(
        "SELECT type, version, data FROM dispatcher_log WHERE position = 1"
    ).first()
    if row is None:
        return None
    try:
        body = decode_body(*row)
    except (UnknownEntry, msgspec.MsgspecError, TypeError, UnicodeError) as error:
        raise LogCorrupt(1, str(error)) from None
    if not isinstance(body, LogOpened):
        raise LogCorrupt(1, f"a log begins with LogOpened, not with {row[0]}")
    return body.kind


def load_frontier(connection: Connection, size: int) -> Frontier:
    """The tree over the first `size` entries, from its tiles and at most 255 leaves."""
    frontier = Frontier()
    for level in reversed(TILE_LEVELS):
        rows = connection.exec_driver_sql(
            "SELECT number, hash FROM dispatcher_tiles WHERE level = ? AND number >= ? AND number < ?"
            " ORDER BY number",
            (level, frontier.size >> level, size >> level),
        )
        for number, subtree in rows:
            if number != frontier.size >> level:
                break  # one is missing: what is below it serves as well
            frontier.push(level, _hash(subtree, frontier.size))
    leaves = connection.exec_driver_sql(
        "SELECT hash FROM dispatcher_log WHERE position > ? AND position <= ? ORDER BY position",
        (frontier.size, size),
    )
    for (leaf,) in leaves:
        frontier.push(0, _hash(leaf, frontier.size))
    if frontier.size != size:
        raise LogCorrupt(frontier.size + 1, "entries or tiles are missing")
    return frontier


def _hash(value: Any, size: int) -> bytes:
    if type(value) is not bytes or len(value) != 32:
        raise LogCorrupt(size + 1, "has a hash that is none")
    return value


def stored_tiles(connection: Connection) -> list[Tile]:
    """The tiles as they lie in the database."""
    found = connection.exec_driver_sql("SELECT level, number, hash FROM dispatcher_tiles")
    return [Tile(*row) for row in found]


def head(connection: Connection) -> str:
    """`POSITION:ROOT` of the log as it stands."""
    position, _ = last_entry(connection)
    return format_head(position, load_frontier(connection, position).root())


def rows(
    connection: Connection, after: int = 0, until: int | None = None, columns: str = COLUMNS
) -> Iterator[Sequence[Any]]:
    """Rows of the log as plain tuples (by default: see LogRow), in order of position, a batch at a time.

    Entries after position `after`, up to and including `until`.
    """
    where, given = "WHERE position > ?", [after]
    if until is not None:
        where, given = f"{where} AND position <= ?", [after, until]
    # The driver's own cursor: SQLAlchemy's rows cost as much again as reading them.
    cursor = connection.connection.cursor()
    try:
        cursor.execute(f"SELECT {columns} FROM dispatcher_log {where} ORDER BY position", given)
        while batch := cursor.fetchmany(ROWS_PER_FETCH):
            yield batch
    finally:
        cursor.close()


def rows_of(connection: Connection, delivery_id: str) -> list[LogRow]:
    """Every row about one delivery, in order."""
    found = connection.exec_driver_sql(
        f"{_EVERY_ROW} WHERE delivery_id = ? ORDER BY position", (delivery_id,)
    )
    return [LogRow(*row) for row in found]


def entry_of(row: Any) -> Entry:
    """The entry that a row holds; LogCorrupt when it can't be read."""
    try:
        return Entry(row[1], row[4], row[5], decode_body(row[2], row[3], row[6]))
    except (UnknownEntry, msgspec.MsgspecError, TypeError, UnicodeError) as error:
        raise LogCorrupt(row[0], str(error)) from None
