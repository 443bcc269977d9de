"""What applications have accepted in their own transactions, until it is taken into the log."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import Connection

from dispatcher.log.rows import driver, fetch_at_once

if TYPE_CHECKING:
    # Whoever only reads does without what it takes to encrypt.
    from dispatcher.log.vault import SealedPayload

# A write comes first, and its key is written once: where a row of this table moved, it would leave bytes.
_NUMBER = "INSERT INTO dispatcher_inbox_keys (key) "
_OF_ANY = "VALUES (?) RETURNING n"
_OF_ENDPOINT = "SELECT ? FROM dispatcher_endpoints WHERE endpoint_id = ? RETURNING n"
_COLUMNS = "n, accepted_at, tenant, endpoint_id, event_id, event_type, order_key, actor, refused"
_PUT = (
    "INSERT INTO dispatcher_inbox"
    " (n, accepted_at, tenant, endpoint_id, event_id, event_type, order_key, actor, digest, sealed)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
# One by one: see log.append.
_DESTROY_KEY = "UPDATE dispatcher_inbox_keys SET key = zeroblob(length(key)) WHERE n = ?"


class Accepted(NamedTuple):
    """An event of the inbox."""

    n: int
    accepted_at: int
    tenant: str
    endpoint_id: str | None
    """The log's id; None of an event that was published, to whichever endpoints want it."""
    event_id: str
    event_type: str | None
    order_key: str | None
    """Its digest."""
    actor: str | None
    refused: str | None = None
    """Why it could not be taken into the log; None while it waits."""


class Waiting(NamedTuple):
    """One that waits, with what it holds."""

    event: Accepted
    wrapped: bytes
    sealed: bytes
    digest: str

    def __repr__(self) -> str:
        return f"Waiting({self.event})"  # Without a master key, `wrapped` is the key itself.


def put(cursor: Any, event: Accepted, payload: SealedPayload) -> bool:
    """Accept an event in the transaction of a cursor; its number is ignored.

    False, with nothing written, when there is no such endpoint.
    """
    if event.endpoint_id is None:
        cursor.execute(_NUMBER + _OF_ANY, (payload.wrapped,))
    else:
        cursor.execute(_NUMBER + _OF_ENDPOINT, (payload.wrapped, event.endpoint_id))
    numbered = cursor.fetchall()
    if not numbered:
        return False
    ((n,),) = numbered
    cursor.execute(_PUT, (n, *event[1:-1], payload.digest, payload.sealed))
    return True


def last(connection: Connection) -> int | None:
    """The number of the newest event that waits."""
    found = "SELECT n FROM dispatcher_inbox WHERE refused IS NULL ORDER BY n DESC LIMIT 1"
    row = driver(connection).execute(found).fetchone()
    return None if row is None else row[0]


def count_waiting(connection: Connection) -> int:
    found = connection.exec_driver_sql("SELECT count(*) FROM dispatcher_inbox WHERE refused IS NULL")
    return int(found.scalar_one())


def waiting(connection: Connection, upto: int, limit: int) -> list[Waiting]:
    """The oldest of those that wait, up to a number."""
    columns = ", ".join(f"i.{column}" for column in _COLUMNS.split(", "))
    found = fetch_at_once(
        connection,
        f"{columns}, hex(key), hex(sealed), digest",
        "(SELECT * FROM dispatcher_inbox WHERE refused IS NULL AND n <= ? ORDER BY n LIMIT ?) AS i"
        " JOIN dispatcher_inbox_keys AS k ON k.n = i.n",
        (upto, limit),
    )
    return [
        Waiting(Accepted(*fields), bytes.fromhex(wrapped), bytes.fromhex(sealed), digest)
        for *fields, wrapped, sealed, digest in sorted(found)
    ]


def remove(connection: Connection, numbers: Iterable[int]) -> None:
    """Of events that are in the log, or given up: nothing is left of their keys in this table."""
    given = [(n,) for n in numbers]
    driver(connection).executemany(_DESTROY_KEY, given)
    driver(connection).executemany("DELETE FROM dispatcher_inbox WHERE n = ?", given)
    # Only all at once: deleting one of many keys may move the others, and where the table grew on somebody's
    # connection copies may be left in it. Emptied on one of ours, its pages are overwritten.
    if driver(connection).execute("SELECT 1 FROM dispatcher_inbox LIMIT 1").fetchone() is None:
        driver(connection).execute("DELETE FROM dispatcher_inbox_keys")


def refuse(connection: Connection, refusals: Iterable[tuple[str | None, int]]) -> None:
    """Keep events, by (why, number), which are not tried again by themselves; with None they are."""
    driver(connection).executemany("UPDATE dispatcher_inbox SET refused = ? WHERE n = ?", refusals)


def refused(connection: Connection, numbers: Iterable[int] | None) -> list[int]:
    """Which of these, or of all, were refused."""
    found = driver(connection).execute("SELECT n FROM dispatcher_inbox WHERE refused IS NOT NULL ORDER BY n")
    wanted = None if numbers is None else set(numbers)
    return [n for (n,) in found if wanted is None or n in wanted]


def refused_for(
    connection: Connection, tenant: str, endpoint_id: str | None, before: int | None
) -> list[int]:
    """Which were refused, of a tenant or one of its endpoints: all, or those accepted before a time."""
    found = driver(connection).execute(
        "SELECT n FROM dispatcher_inbox WHERE refused IS NOT NULL AND tenant = ?"
        " AND (? IS NULL OR endpoint_id = ?) AND (? IS NULL OR accepted_at < ?)",
        (tenant, endpoint_id, endpoint_id, before, before),
    )
    return [n for (n,) in found]


def every(connection: Connection) -> list[Accepted]:
    """All that are there, the oldest first."""
    found = connection.exec_driver_sql(f"SELECT {_COLUMNS} FROM dispatcher_inbox ORDER BY n")
    return [Accepted(*row) for row in found]


def find(connection: Connection, tenant: str, endpoint_id: str | None, event_id: str) -> Accepted | None:
    """The newest event of this id for an endpoint, or one that was published; for any, unless it is named."""
    found = connection.exec_driver_sql(
        f"SELECT {_COLUMNS} FROM dispatcher_inbox WHERE event_id = ? AND tenant = ?"
        " AND (? IS NULL OR coalesce(endpoint_id, ?) = ?) ORDER BY n DESC LIMIT 1",
        (event_id, tenant, endpoint_id, endpoint_id, endpoint_id),
    ).first()
    return None if found is None else Accepted(*found)
