"""The view tables: how the state is written to them and read back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

import msgspec
from sqlalchemy import Connection, Table

from dispatcher.core.entities import Delivery, Endpoint, Lane, StoredDelivery
from dispatcher.core.policy import RetryPolicy
from dispatcher.core.state import State
from dispatcher.core.window import Item, Window
from dispatcher.log.schema import deliveries, endpoints, lanes

Row = tuple[Any, ...]
Changes = tuple[Iterable[Delivery], Iterable[Lane], Iterable[Endpoint]]

_encode = msgspec.json.encode
IDS_PER_QUERY = 500
ROWS_PER_STEP = 50


def delivery_row(delivery: Delivery) -> Row:
    """The columns of dispatcher_deliveries."""
    lane = delivery.lane
    return (
        delivery.order,
        delivery.id,
        lane.endpoint.id,
        lane.key,
        delivery.state,
        delivery.attempts,
        delivery.due_at,
        delivery.resumption,
        delivery.death,
        delivery.last_status,
        delivery.last_error,
        None if delivery.outcomes is None else _outcomes_json(delivery.outcomes),
        delivery.seed,
        delivery.digest,
        int(delivery.erased),
    )


def lane_row(lane: Lane) -> Row | None:
    """The columns of dispatcher_lanes; None when nothing is pending in it. The lane must have been shown."""
    if not lane.shown:
        return None
    resumption, due_at, order, key = lane.shown
    return lane.endpoint.id, key, order, due_at, resumption


def endpoint_row(state: State, endpoint: Endpoint) -> Row:
    """The columns of dispatcher_endpoints. Its lanes must have been shown."""
    first = None if endpoint.disabled is not None else state.first_due(endpoint)
    return (
        endpoint.id,
        endpoint.registered,
        endpoint.url,
        endpoint.url_digest,
        _policy_json(endpoint.policy),
        endpoint.order,
        endpoint.concurrency,
        endpoint.erase,
        int(endpoint.disable_when_gone),
        endpoint.disabled,
        endpoint.resumptions,
        endpoint.resumed_at,
        endpoint.pending,
        endpoint.delivered,
        endpoint.dead,
        endpoint.cancelled,
        None if first is None else first[0],
    )


@lru_cache(maxsize=1024)
def _outcomes_json(outcomes: tuple[int, ...]) -> str:
    return _encode(outcomes).decode()


@lru_cache(maxsize=1024)
def _outcomes(text: str) -> tuple[int, ...]:
    return msgspec.json.decode(text, type=tuple[int, ...])


@lru_cache(maxsize=256)
def _policy_json(policy: RetryPolicy) -> str:
    return _encode(policy).decode()


@lru_cache(maxsize=256)
def _policy(text: str) -> RetryPolicy:
    return msgspec.json.decode(text, type=RetryPolicy)


def insert(table: Table) -> str:
    """INSERT with one placeholder for each column: given to the driver as it is, with rows of tuples."""
    marks = ", ".join("?" * len(table.columns))
    return f"INSERT INTO {table.name} ({', '.join(c.name for c in table.columns)}) VALUES ({marks})"


def insert_rows(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Insert rows, many with each step of a statement: by half faster than one by one, for a view table."""
    statement = insert(table)
    marks = statement.partition(" VALUES ")[2]
    many = statement + f", {marks}" * (ROWS_PER_STEP - 1)
    whole = len(rows) - len(rows) % ROWS_PER_STEP
    steps = [tuple(chain(*rows[n : n + ROWS_PER_STEP])) for n in range(0, whole, ROWS_PER_STEP)]
    _write(connection, many, steps)
    _write(connection, statement, rows[whole:])


def _update(table: Table) -> str:
    key, *rest = (c.name for c in table.columns)
    return f"UPDATE {table.name} SET {', '.join(f'{name} = ?' for name in rest)} WHERE {key} = ?"


def write_changes(connection: Connection, state: State, changes: Changes, since: int) -> None:
    """Write the rows of changed entities; those born after position `since` are new to the tables."""
    changed_deliveries, changed_lanes, changed_endpoints = changes
    shown: list[Row] = []
    emptied: list[Row] = []
    for lane in changed_lanes:
        state.show(lane)
        row = lane_row(lane)
        if row is None:
            emptied.append((lane.endpoint.id, lane.key))
        else:
            shown.append(row)
    _write(connection, "DELETE FROM dispatcher_lanes WHERE endpoint_id = ? AND lane = ?", emptied)
    _write(connection, insert(lanes).replace("INSERT", "INSERT OR REPLACE", 1), shown)
    _write_rows(
        connection, endpoints, [(e.registered, endpoint_row(state, e)) for e in changed_endpoints], since
    )
    _write_rows(connection, deliveries, [(d.order, delivery_row(d)) for d in changed_deliveries], since)


def _write_rows(connection: Connection, table: Table, rows: list[tuple[int, Row]], since: int) -> None:
    insert_rows(connection, table, [row for born, row in rows if born > since])
    _write(connection, _update(table), [(*row[1:], row[0]) for born, row in rows if born <= since])


def _write(connection: Connection, statement: str, rows: Sequence[Row]) -> None:
    if rows:
        connection.exec_driver_sql(statement, list(rows))


_ENDPOINT = f"SELECT {', '.join(c.name for c in endpoints.columns)} FROM dispatcher_endpoints"
_DELIVERY = (
    "SELECT delivery_id, endpoint_id, lane, position, due_at, resumption, outcomes, seed, digest, state,"
    " attempts, death, last_status, last_error, erased FROM dispatcher_deliveries"
)


class ViewSource:
    """The state as the view tables hold it, within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def endpoints(self, ids: Iterable[str]) -> list[Endpoint]:
        return [_endpoint(row) for row in self._by_ids(f"{_ENDPOINT} WHERE endpoint_id IN", ids)]

    def all_endpoints(self) -> list[Endpoint]:
        """Every endpoint, in the order of registration."""
        return [_endpoint(row) for row in self._rows(f"{_ENDPOINT} ORDER BY registered")]

    def deliveries(self, ids: Iterable[str]) -> list[StoredDelivery]:
        return [_delivery(row) for row in self._by_ids(f"{_DELIVERY} WHERE delivery_id IN", ids)]

    def pending_after(self, endpoint_id: str, lane: str, order: int, limit: int) -> list[StoredDelivery]:
        where = "endpoint_id = ? AND lane = ? AND state = 'pending' AND position > ?"
        statement = f"{_DELIVERY} WHERE {where} ORDER BY position LIMIT ?"
        return [_delivery(row) for row in self._rows(statement, endpoint_id, lane, order, limit)]

    def lanes_after(self, endpoint_id: str, after: Item, limit: int) -> list[Item]:
        beyond = "AND (resumption, due_at, head, lane) > (?, ?, ?, ?)" if after else ""
        return self._rows(
            f"SELECT resumption, due_at, head, lane FROM dispatcher_lanes WHERE endpoint_id = ? {beyond}"
            " ORDER BY resumption, due_at, head, lane LIMIT ?",
            endpoint_id,
            *after,
            limit,
        )

    def dead(self, endpoint_id: str | None) -> list[StoredDelivery]:
        where = "state = 'dead'" if endpoint_id is None else "endpoint_id = ? AND state = 'dead'"
        given = () if endpoint_id is None else (endpoint_id,)
        return [_delivery(row) for row in self._rows(f"{_DELIVERY} WHERE {where} ORDER BY death", *given)]

    def due(self, ts: int) -> list[str]:
        rows = self._rows("SELECT endpoint_id FROM dispatcher_endpoints WHERE next_due_at <= ?", ts)
        return [endpoint_id for (endpoint_id,) in rows]

    def _rows(self, statement: str, *parameters: object) -> list[Row]:
        return [tuple(row) for row in self._connection.exec_driver_sql(statement, parameters)]

    def _by_ids(self, statement: str, ids: Iterable[str]) -> list[Row]:
        wanted = list(ids)
        rows: list[Row] = []
        for start in range(0, len(wanted), IDS_PER_QUERY):
            some = wanted[start : start + IDS_PER_QUERY]
            rows += self._rows(f"{statement} ({', '.join('?' * len(some))})", *some)
        return rows


def _endpoint(row: Row) -> Endpoint:
    return Endpoint(
        id=row[0],
        registered=row[1],
        url=row[2],
        url_digest=row[3],
        policy=_policy(row[4]),
        order=row[5],
        concurrency=row[6],
        erase=row[7],
        disable_when_gone=bool(row[8]),
        disabled=row[9],
        resumptions=row[10],
        resumed_at=row[11],
        pending=row[12],
        delivered=row[13],
        dead=row[14],
        cancelled=row[15],
        lane_order=Window(complete=False),
        stored=True,
    )


def _delivery(row: Row) -> StoredDelivery:
    outcomes = row[6]
    columns = *row[:6], None if outcomes is None else _outcomes(outcomes), *row[7:14], bool(row[14])
    return StoredDelivery(*columns)
