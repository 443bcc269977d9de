"""The view tables: how the state is written to them and read back."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec
from sqlalchemy import Connection

from dispatcher.core.entities import Delivery, Endpoint, Lane, StoredDelivery
from dispatcher.core.entries import MAIL_URL, BodyFormat, Ordering
from dispatcher.core.policy import RetryPolicy
from dispatcher.core.state import Place, State
from dispatcher.core.types import wants
from dispatcher.core.window import Item, Window
from dispatcher.log.rows import (
    Row,
    delete_rows,
    driver,
    fetch_at_once,
    insert_rows,
    replace_rows,
    update_rows,
)
from dispatcher.log.schema import deliveries, endpoints, lanes

Changes = tuple[Collection[Delivery], Iterable[Lane], Iterable[Endpoint]]

_encode = msgspec.json.encode
IDS_PER_QUERY = 500
LAST_POSITION = 2**63 - 1


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
        delivery.event_type,
    )


DELIVERY_CHANGES = (
    "state",
    "attempts",
    "due_at",
    "resumption",
    "death",
    "last_status",
    "last_error",
    "erased",
)
"""The columns that can change; no index that holds only others has to be touched."""


def delivery_change(delivery: Delivery) -> Row:
    """The key of dispatcher_deliveries, and the columns that can change."""
    return (
        delivery.order,
        delivery.state,
        delivery.attempts,
        delivery.due_at,
        delivery.resumption,
        delivery.death,
        delivery.last_status,
        delivery.last_error,
        int(delivery.erased),
    )


ENDPOINT_CHANGES = tuple(c.name for c in endpoints.columns)[2:]


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
        None if endpoint.types is None else _types_json(endpoint.types),
        endpoint.body_format,
        endpoint.keep_payloads,
    )


@lru_cache(maxsize=1024)
def _outcomes_json(outcomes: tuple[int, ...]) -> str:
    return _encode(outcomes).decode()


@lru_cache(maxsize=1024)
def _outcomes(text: str) -> tuple[int, ...]:
    return msgspec.json.decode(text, type=tuple[int, ...])


@lru_cache(maxsize=256)
def _types_json(types: tuple[str, ...]) -> str:
    return _encode(types).decode()


@lru_cache(maxsize=256)
def _types(text: str) -> tuple[str, ...]:
    return msgspec.json.decode(text, type=tuple[str, ...])


@lru_cache(maxsize=256)
def _policy_json(policy: RetryPolicy) -> str:
    return _encode(policy).decode()


@lru_cache(maxsize=256)
def _policy(text: str) -> RetryPolicy:
    return msgspec.json.decode(text, type=RetryPolicy)


def write_changes(connection: Connection, state: State, changes: Changes, since: int) -> None:
    """Write the rows of changed entities; those born after position `since` are new to the tables."""
    changed_deliveries, changed_lanes, changed_endpoints = changes
    changed_lanes = list(changed_lanes)
    state.load_heads(changed_lanes)
    shown: list[Row] = []
    emptied: list[Row] = []
    for lane in changed_lanes:
        state.show(lane)
        row = lane_row(lane)
        if row is None:
            emptied.append((lane.endpoint.id, lane.key))
        else:
            shown.append(row)
    delete_rows(connection, lanes, emptied)
    replace_rows(connection, lanes, shown)
    new: list[Row] = []
    old: list[Row] = []
    for endpoint in changed_endpoints:
        (new if endpoint.registered > since else old).append(endpoint_row(state, endpoint))
    insert_rows(connection, endpoints, new)
    update_rows(connection, endpoints, ENDPOINT_CHANGES, [(row[0], *row[2:]) for row in old])
    born = [delivery for delivery in changed_deliveries if delivery.order > since]
    known = [delivery for delivery in changed_deliveries if delivery.order <= since]
    insert_rows(connection, deliveries, [delivery_row(delivery) for delivery in born])
    update_rows(connection, deliveries, DELIVERY_CHANGES, [delivery_change(delivery) for delivery in known])


_ENDPOINT = f"SELECT {', '.join(c.name for c in endpoints.columns)} FROM dispatcher_endpoints"
_DELIVERY_COLUMNS = (
    "delivery_id, endpoint_id, lane, position, due_at, resumption, outcomes, seed, digest,"
    " event_type, state, attempts, death, last_status, last_error, erased"
)
_DELIVERY = f"SELECT {_DELIVERY_COLUMNS} FROM dispatcher_deliveries"
_OF_TENANT = "FROM dispatcher_endpoints WHERE endpoint_id > ? AND endpoint_id < ?"
# For each lane that is asked for: its place among them, and its rows.
_PENDING_AFTER = (
    f"asked.key, json((SELECT json_group_array(json_array({_DELIVERY_COLUMNS})) FROM ({_DELIVERY}"
    " WHERE endpoint_id = asked.value ->> 0 AND lane = asked.value ->> 1 AND state = 'pending'"
    " AND position > asked.value ->> 2 ORDER BY position LIMIT :limit)))"
)


def _span(tenant: str) -> tuple[str, str]:
    """Between these are the ids of a tenant's endpoints: "0" is the character after "/"."""
    return f"{tenant}/", f"{tenant}0"


class Subscriber(NamedTuple):
    """An endpoint that wants an event, and what its delivery depends on."""

    endpoint_id: str
    body_format: BodyFormat | None
    order: Ordering


class ViewSource:
    """The state as the view tables hold it, within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def endpoints(self, ids: Iterable[str]) -> list[Endpoint]:
        return [_endpoint(row) for row in self._by_ids(f"{_ENDPOINT} WHERE endpoint_id IN", ids)]

    def all_endpoints(self) -> list[Endpoint]:
        """Every endpoint, in the order of registration."""
        return [_endpoint(row) for row in self._rows(f"{_ENDPOINT} ORDER BY registered")]

    def deliveries(self, ids: Iterable[str]) -> list[StoredDelivery]:
        return [_delivery(row) for row in self._by_ids(f"{_DELIVERY} WHERE delivery_id IN", ids)]

    def pending_after(self, lanes: Sequence[Place], limit: int) -> list[list[StoredDelivery]]:
        given = {"lanes": json.dumps(lanes), "limit": limit}
        found = fetch_at_once(self.connection, _PENDING_AFTER, "json_each(:lanes) AS asked", given)
        return [[_delivery(tuple(row)) for row in rows] for _, rows in sorted(found)]

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

    def dead_after(
        self, endpoint_id: str, order: int, limit: int | None, died_from: int, died_before: int | None
    ) -> list[StoredDelivery]:
        # The positions come from the index of the dead alone; `+` keeps the planner from walking through
        # all deliveries of all endpoints in the order that is asked for.
        before = LAST_POSITION if died_before is None else died_before
        chosen = (
            "SELECT position FROM dispatcher_deliveries WHERE endpoint_id = ? AND state = 'dead'"
            " AND death >= ? AND death < ? AND +position > ? ORDER BY +position LIMIT ?"
        )
        rows = self._rows(
            f"{_DELIVERY} WHERE position IN ({chosen}) ORDER BY position",
            endpoint_id,
            died_from,
            before,
            order,
            LAST_POSITION if limit is None else limit,
        )
        return [_delivery(row) for row in rows]

    def pending_behind(self, endpoint_id: str, lane: str, order: int, limit: int) -> int:
        """How many pending deliveries of a lane are later than order; no more than `limit` are counted."""
        ((count,),) = self._rows(
            "SELECT count(*) FROM (SELECT 1 FROM dispatcher_deliveries WHERE endpoint_id = ? AND lane = ?"
            " AND state = 'pending' AND position > ? LIMIT ?)",
            endpoint_id,
            lane,
            order,
            limit,
        )
        return int(count)

    def sender(self, delivery_id: str) -> tuple[str, int] | None:
        """Which worker sends a delivery right now, and since when."""
        found = self._rows(
            "SELECT worker, started_at FROM dispatcher_claims WHERE delivery_id = ?", delivery_id
        )
        return (found[0][0], found[0][1]) if found else None

    def endpoints_of(self, tenant: str) -> list[str]:
        """The ids of a live log's endpoints of one tenant."""
        found = self._rows(f"SELECT endpoint_id {_OF_TENANT}", *_span(tenant))
        return [endpoint_id for (endpoint_id,) in found]

    def subscribers(self, tenant: str, event_type: str) -> list[Subscriber]:
        """Those of a live log's endpoints of one tenant that want events of a type, by registration."""
        tenants = _span(tenant)
        # Many endpoints want the same: each text is read once, and no row of an endpoint that wants others.
        texts = [
            text for (text,) in self._rows(f"SELECT DISTINCT coalesce(types, '') {_OF_TENANT}", *tenants)
        ]
        wanted = [text for text in texts if wants(_types(text) if text else None, event_type)]
        rows = self._rows(
            f"SELECT endpoint_id, body_format, ordering {_OF_TENANT}"
            " AND coalesce(types, '') IN (SELECT value FROM json_each(?)) ORDER BY registered",
            *tenants,
            json.dumps(wanted),
        )
        return [Subscriber(*row) for row in rows]

    def scrubbed(self, position: int) -> bool:
        """Whether no byte of an erased payload's key is left, neither in the file nor beside it."""
        found = self._rows("SELECT 1 FROM dispatcher_unscrubbed WHERE n = ?", position)
        return not found

    def unerased(self, endpoint_id: str, after: int, before: int, limit: int) -> tuple[list[str], int | None]:
        """Deliveries of an endpoint with a payload, enqueued between two positions, in order.

        Those among its next `limit` entries after a position; with the last position that was looked at, or
        None when there are no more.
        """
        rows = self._rows(
            "SELECT l.position, d.delivery_id FROM (SELECT position FROM dispatcher_log WHERE endpoint_id = ?"
            " AND position > ? AND position < ? ORDER BY position LIMIT ?) AS l"
            " LEFT JOIN dispatcher_deliveries AS d ON d.position = l.position AND d.erased = 0"
            " ORDER BY l.position",
            endpoint_id,
            after,
            before,
            limit,
        )
        found = [delivery_id for _, delivery_id in rows if delivery_id is not None]
        return found, rows[-1][0] if len(rows) == limit else None

    def times(self, positions: Iterable[int]) -> dict[int, int]:
        """When the entries at these positions were appended, in the log's unit."""
        rows = self._by_ids("SELECT position, ts FROM dispatcher_log WHERE position IN", positions)
        return dict(rows)

    def due(self, ts: int) -> list[str]:
        rows = self._rows("SELECT endpoint_id FROM dispatcher_endpoints WHERE next_due_at <= ?", ts)
        return [endpoint_id for (endpoint_id,) in rows]

    def backlog(self, mail: bool) -> tuple[int, int | None]:
        """How many events of enabled endpoints are pending, and when the first of them is due.

        Those of mail are left out unless they are wanted, too.
        """
        ((pending, next_due_at),) = self._rows(
            "SELECT coalesce(sum(pending), 0), min(next_due_at) FROM dispatcher_endpoints"
            " WHERE disabled IS NULL AND (? OR url <> ?)",
            mail,
            MAIL_URL,
        )
        return pending, next_due_at

    def _rows(self, statement: str, *parameters: object) -> list[Row]:
        return driver(self.connection).execute(statement, parameters).fetchall()

    def _by_ids(self, statement: str, ids: Iterable[str] | Iterable[int]) -> list[Row]:
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
        types=None if row[17] is None else _types(row[17]),
        body_format=row[18],
        keep_payloads=row[19],
        lane_order=Window(complete=False),
        stored=True,
    )


def _delivery(row: Row) -> StoredDelivery:
    outcomes = row[6]
    columns = *row[:6], None if outcomes is None else _outcomes(outcomes), *row[7:15], bool(row[15])
    return StoredDelivery(*columns)
