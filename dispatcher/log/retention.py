"""How far endpoints' entries were walked over, to erase payloads that are kept for a time only."""

from __future__ import annotations

from typing import Any

from dispatcher.log.open import Connection
from dispatcher.log.read import COLUMNS, first_since

_AFTER = f"SELECT {COLUMNS} FROM dispatcher_log WHERE endpoint_id = ? AND position > ? AND position < ?"


def due(connection: Connection, now: int) -> list[str]:
    """The endpoints that have entries older than they keep payloads, and not yet walked over."""
    kept = connection.exec_driver_sql(
        "SELECT endpoint_id, keep_payloads FROM dispatcher_endpoints WHERE keep_payloads IS NOT NULL"
    ).all()
    before = {keep: first_since(connection, now - keep) for keep in {keep for _, keep in kept}}
    return [
        endpoint_id
        for endpoint_id, keep in kept
        if entries_between(connection, endpoint_id, walked_to(connection, endpoint_id), before[keep], 1)
    ]


def walked_to(connection: Connection, endpoint_id: str) -> int:
    found = connection.exec_driver_sql(
        "SELECT upto FROM dispatcher_retention WHERE endpoint_id = ?", (endpoint_id,)
    ).scalar()
    return 0 if found is None else int(found)


def write_walked_to(connection: Connection, endpoint_id: str, upto: int) -> None:
    connection.exec_driver_sql(
        "INSERT OR REPLACE INTO dispatcher_retention VALUES (?, ?)", (endpoint_id, upto)
    )


def entries_between(
    connection: Connection, endpoint_id: str, after: int, before: int, limit: int
) -> list[Any]:
    """The first rows of an endpoint's log between two positions."""
    return list(
        connection.exec_driver_sql(f"{_AFTER} ORDER BY position LIMIT ?", (endpoint_id, after, before, limit))
    )
