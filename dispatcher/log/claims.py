"""Who is sending what right now. A claim is an intention: the log holds only what happened."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from sqlalchemy import Connection


class Claim(NamedTuple):
    """A delivery that one worker may send, until its lease ends. Times in the log's unit."""

    fence: int
    """Never used again: whoever records a result shows it."""
    endpoint_id: str
    lane: str
    delivery_id: str
    position: int
    attempt: int
    worker: str
    started_at: int
    leased_until: int


class Limits(NamedTuple):
    lease: int
    """How long a claim holds, in the log's unit."""
    per_tenant: int = 64


_COLUMNS = "fence, endpoint_id, lane, delivery_id, position, attempt, worker, started_at, leased_until"
_DUE_ENDPOINTS = (
    "SELECT endpoint_id, concurrency, resumptions FROM dispatcher_endpoints WHERE next_due_at <= ?"
    " ORDER BY next_due_at, endpoint_id"
)
# Lanes whose time was set before the endpoint's newest resumption are due.
_DUE_LANES = (
    "SELECT l.lane, d.delivery_id, d.position, d.attempts + 1 FROM dispatcher_lanes AS l"
    " JOIN dispatcher_deliveries AS d ON d.position = l.head"
    " WHERE l.endpoint_id = ? AND (l.resumption < ? OR l.resumption = ? AND l.due_at <= ?)"
    " AND NOT EXISTS"
    " (SELECT 1 FROM dispatcher_claims AS c WHERE c.endpoint_id = l.endpoint_id AND c.lane = l.lane)"
    " ORDER BY l.resumption, l.due_at, l.head LIMIT ?"
)


def claim(connection: Connection, now: int, worker: str, limit: int, limits: Limits) -> list[Claim]:
    """Claim up to `limit` lane heads that are due at `now`: one for each lane, none past a limit.

    The view tables must say what the log says, under the lock of the transaction.
    """
    counted = connection.exec_driver_sql(
        "SELECT endpoint_id, count(*) FROM dispatcher_claims GROUP BY endpoint_id"
    )
    at_endpoint = {endpoint_id: count for endpoint_id, count in counted}  # noqa: C416
    at_tenant: Counter[str] = Counter()
    for endpoint_id, count in at_endpoint.items():
        at_tenant[tenant_of(endpoint_id)] += count
    claims: list[Claim] = []
    for endpoint_id, concurrency, resumptions in connection.exec_driver_sql(_DUE_ENDPOINTS, (now,)):
        tenant = tenant_of(endpoint_id)
        room = min(
            limit - len(claims),
            concurrency - at_endpoint.get(endpoint_id, 0),
            limits.per_tenant - at_tenant[tenant],
        )
        if room > 0:
            lanes = connection.exec_driver_sql(
                _DUE_LANES, (endpoint_id, resumptions, resumptions, now, room)
            ).all()
            claims += [
                _claim(connection, endpoint_id, *lane, worker, now, now + limits.lease) for lane in lanes
            ]
            at_tenant[tenant] += len(lanes)
        if len(claims) == limit:
            break
    return claims


def release(connection: Connection, fence: int) -> Claim | None:
    """Give a claim up and return it; None when there is none with this fence any more."""
    row = connection.exec_driver_sql(
        f"DELETE FROM dispatcher_claims WHERE fence = ? RETURNING {_COLUMNS}", (fence,)
    )
    found = row.first()
    return None if found is None else Claim(*found)


def expired(connection: Connection, now: int) -> list[Claim]:
    """Claims whose lease has ended: their workers are taken for dead."""
    rows = connection.exec_driver_sql(
        f"SELECT {_COLUMNS} FROM dispatcher_claims WHERE leased_until < ? ORDER BY leased_until, fence",
        (now,),
    )
    return [Claim(*row) for row in rows]


def is_claimed(connection: Connection, delivery_id: str) -> bool:
    found = connection.exec_driver_sql(
        "SELECT 1 FROM dispatcher_claims WHERE delivery_id = ?", (delivery_id,)
    )
    return found.first() is not None


def tenant_of(endpoint_id: str) -> str:
    return endpoint_id.partition("/")[0]


def _claim(connection: Connection, *columns: object) -> Claim:
    endpoint_id, lane, delivery_id, position, attempt, worker, started_at, leased_until = columns
    fence = connection.exec_driver_sql(
        "INSERT INTO dispatcher_claims"
        " (endpoint_id, lane, delivery_id, position, attempt, worker, started_at, leased_until)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING fence",
        (endpoint_id, lane, delivery_id, position, attempt, worker, started_at, leased_until),
    ).scalar_one()
    return Claim(fence, *columns)  # type: ignore[arg-type]
