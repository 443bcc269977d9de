"""What the view tables hold, against what the log says they should."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import Any, NamedTuple

from sqlalchemy import Connection, Table
from sqlalchemy.engine.interfaces import DBAPICursor

from dispatcher.core.state import State
from dispatcher.log.read import ROWS_PER_FETCH
from dispatcher.log.rows import Row
from dispatcher.log.schema import deliveries, endpoints, lanes
from dispatcher.log.views import delivery_row, endpoint_row, lane_row

Rows = Iterable[Row]


class Difference(NamedTuple):
    """A row of a view table that is not what the log says."""

    table: str
    position: int | None
    """The entry that the row began with, where it has one."""
    message: str


def view_rows(state: State) -> list[tuple[Table, str, Rows]]:
    """The rows of each view table that a state comes to, with the columns they are ordered by."""
    for endpoint in state.endpoints.values():
        for lane in endpoint.lanes.values():
            state.show(lane)
    shown = (lane_row(lane) for endpoint in state.endpoints.values() for lane in endpoint.lanes.values())
    return [
        (endpoints, "registered", (endpoint_row(state, endpoint) for endpoint in state.endpoints.values())),
        (lanes, "endpoint_id, lane", sorted(row for row in shown if row is not None)),
        (deliveries, "position", map(delivery_row, state.deliveries.values())),
    ]


def differences(connection: Connection, state: State) -> Iterator[Difference]:
    """Each row of the view tables that differs from the state, is missing, or should not be there."""
    for table, order, expected in view_rows(state):
        yield from _table_differences(connection, table, order, expected)


def _table_differences(
    connection: Connection, table: Table, order: str, expected: Rows
) -> Iterator[Difference]:
    cursor = connection.connection.cursor()
    try:
        cursor.execute(
            f"SELECT {', '.join(c.name for c in table.columns)} FROM {table.name} ORDER BY {order}"
        )
        unmatched: dict[Any, tuple[Row | None, Row | None]] = {}
        for found, wanted in zip_longest(_fetched(cursor), expected):
            if found != wanted:
                # The one may be missing, or only be elsewhere in the order: both sides are kept by key.
                if found is not None:
                    key = _key(table, found)
                    unmatched[key] = (found, unmatched.get(key, (None, None))[1])
                if wanted is not None:
                    key = _key(table, wanted)
                    unmatched[key] = (unmatched.get(key, (None, None))[0], wanted)
        for found, wanted in unmatched.values():
            if found != wanted:
                yield _difference(table, found, wanted)
    finally:
        cursor.close()


def _fetched(cursor: DBAPICursor) -> Iterator[Row]:
    while batch := cursor.fetchmany(ROWS_PER_FETCH):
        yield from batch


def _key(table: Table, row: Row) -> Any:
    return row[:2] if table is lanes else row[0]


def _difference(table: Table, found: Row | None, wanted: Row | None) -> Difference:
    row = wanted or found
    assert row is not None
    named = repr(row[1] if table is deliveries else row[0])
    position = {deliveries.name: row[0], endpoints.name: row[1]}.get(table.name)
    if found is None:
        message = f"the row of {named} is missing"
    elif wanted is None:
        message, position = f"the row of {named} is of nothing in the log", None
    else:
        wrong = [c.name for c, a, b in zip(table.columns, found, wanted, strict=True) if a != b]
        message = f"the row of {named} differs from the log in {', '.join(wrong)}"
    return Difference(table.name, position, message)


def erasure_differences(connection: Connection) -> list[tuple[int, bool]]:
    """(position, erased) of deliveries whose payloads' keys say otherwise."""
    found = connection.exec_driver_sql(
        "SELECT d.position, d.erased FROM dispatcher_deliveries AS d"
        " JOIN dispatcher_payload_keys AS k ON k.n = d.position"
        " WHERE d.erased <> (k.key = zeroblob(length(k.key))) ORDER BY d.position"
    )
    return [(position, bool(erased)) for position, erased in found]
