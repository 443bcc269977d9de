"""Who is sending what right now. A claim is an intention: the log holds only what happened."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection

from dispatcher.core.entries import MAIL_URL
from dispatcher.log.rows import driver, fetch_at_once, insert_rows
from dispatcher.log.schema import claims as claims_table


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
    mails: int = 0
    """Of one worker; none of a worker that sends no mail. Of a tenant at most half of what it may have."""


_COLUMNS = "fence, endpoint_id, lane, delivery_id, position, attempt, worker, started_at, leased_until"
# Lanes whose time was set before the endpoint's newest resumption are due. In two halves, so that neither
# walks over lanes that are not.
_DUE_HALVES = ("l.resumption < {resumptions}", "l.resumption = {resumptions} AND l.due_at <= :now")
_DUE_LANES = (
    "SELECT l.head FROM dispatcher_lanes AS l WHERE l.endpoint_id = {endpoint_id} AND {half} AND NOT EXISTS"
    " (SELECT 1 FROM dispatcher_claims AS c WHERE c.endpoint_id = l.endpoint_id AND c.lane = l.lane)"
    " ORDER BY l.resumption, l.due_at, l.head LIMIT {room}"
)


def _due_lanes(endpoint_id: str, resumptions: str, room: str) -> list[str]:
    """Subqueries, one after the other, for the heads of an endpoint's lanes that can be claimed."""
    halves = (half.format(resumptions=resumptions) for half in _DUE_HALVES)
    return [_DUE_LANES.format(endpoint_id=endpoint_id, half=half, room=room) for half in halves]


_FIRST_HEAD = f"coalesce({', '.join(f'({q})' for q in _due_lanes('e.endpoint_id', 'e.resumptions', '1'))})"
_FREE = "e.concurrency - (SELECT count(*) FROM dispatcher_claims AS c WHERE c.endpoint_id = e.endpoint_id)"
_HAS_MORE_LANES = (
    "(SELECT count(*) FROM (SELECT 1 FROM dispatcher_lanes AS l WHERE l.endpoint_id = e.endpoint_id LIMIT 2))"
    " > 1"
)
_DELIVERY = "d.lane, d.delivery_id, d.position, d.attempts + 1"
_FIRST_OF_DUE_ENDPOINTS = (
    f"(SELECT e.endpoint_id, e.resumptions, {_FREE} AS free, {_FIRST_HEAD} AS head,"
    f" {_HAS_MORE_LANES} AS more, e.url = '{MAIL_URL}' AS mail"
    " FROM dispatcher_endpoints AS e WHERE e.next_due_at <= :now"
    f" AND (:mail OR e.url <> '{MAIL_URL}')"
    " AND substr(e.endpoint_id, 1, instr(e.endpoint_id, '/') - 1) NOT IN"
    " (SELECT value FROM json_each(:full_tenants))"
    f" AND {_FREE} > 0 AND {_FIRST_HEAD} IS NOT NULL ORDER BY e.next_due_at, e.rowid LIMIT :limit) AS due"
    " JOIN dispatcher_deliveries AS d ON d.position = due.head"
)
_DUE_OF_ENDPOINT = (
    "("
    + " UNION ALL ".join(f"SELECT * FROM ({q})" for q in _due_lanes(":endpoint_id", ":resumptions", ":room"))
    + " LIMIT :room) AS due JOIN dispatcher_deliveries AS d ON d.position = due.head"
)
_NEXT_CHANGE = (
    "SELECT min(at) FROM"
    " (SELECT min(next_due_at) AS at FROM dispatcher_endpoints WHERE next_due_at > ?"
    " UNION ALL SELECT min(leased_until) + 1 FROM dispatcher_claims)"
)
_MAILS = (
    "(SELECT c.worker, substr(c.endpoint_id, 1, instr(c.endpoint_id, '/') - 1) AS tenant, count(*) AS count"
    " FROM dispatcher_claims AS c JOIN dispatcher_endpoints AS e ON e.endpoint_id = c.endpoint_id"
    f" WHERE e.url = '{MAIL_URL}' GROUP BY 1, 2)"
)
_LAST_FENCE = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'dispatcher_claims'"
_BY_TENANT = (
    "(SELECT substr(endpoint_id, 1, instr(endpoint_id, '/') - 1) AS tenant, count(*) AS count"
    " FROM dispatcher_claims GROUP BY 1)"
)


def claim(connection: Connection, now: int, worker: str, limit: int, limits: Limits) -> list[Claim]:
    """Claim up to `limit` lane heads that are due at `now`: one for each lane, none past a limit.

    The view tables must say what the log says, under the lock of the transaction.
    """
    claims: list[Claim] = []
    mail = limits.mails > 0
    while len(claims) < limit:
        asked = limit - len(claims)
        found, endpoints, mail = _due(connection, now, worker, asked, limits, mail)
        claims += _insert(connection, [(*one, worker, now, now + limits.lease) for one in found])
        # When many endpoints were asked for in vain, since their tenants came to their limits just now, or
        # mail did, others wait behind them.
        if endpoints < asked:
            break
    return claims


def _due(
    connection: Connection, now: int, worker: str, limit: int, limits: Limits, mail: bool
) -> tuple[list[tuple[Any, ...]], int, bool]:
    """(endpoint, lane, delivery, position, attempt) to claim, how many endpoints were looked at, and whether
    more may be claimed for those of mail, if any may now."""
    per_tenant = limits.per_tenant
    at_tenant = Counter(dict(fetch_at_once(connection, "tenant, count", _BY_TENANT, ())))
    full = [tenant for tenant, count in at_tenant.items() if count >= per_tenant]
    given = {"now": now, "limit": limit, "full_tenants": json.dumps(full), "mail": mail}
    columns = f"due.endpoint_id, due.resumptions, due.free, due.more, due.mail, {_DELIVERY}"
    endpoints = fetch_at_once(connection, columns, _FIRST_OF_DUE_ENDPOINTS, given)
    mails = (
        _Mails(connection, worker, limits) if any(by_mail for _, _, _, _, by_mail, *_ in endpoints) else None
    )
    found: list[tuple[Any, ...]] = []
    for endpoint_id, resumptions, free, more, by_mail, *first in endpoints:
        tenant = tenant_of(endpoint_id)
        room = min(free, limit - len(found), per_tenant - at_tenant[tenant])
        if by_mail and mails is not None:
            room = min(room, mails.room_of(tenant))
        if room <= 0:
            continue
        heads = [first]
        if more and room > 1:
            given = {"endpoint_id": endpoint_id, "resumptions": resumptions, "now": now, "room": room}
            heads = fetch_at_once(connection, _DELIVERY, _DUE_OF_ENDPOINT, given)
        found += ((endpoint_id, *head) for head in heads)
        at_tenant[tenant] += len(heads)
        if by_mail and mails is not None:
            mails.take(tenant, len(heads))
    return found, len(endpoints), mail and (mails is None or mails.room > 0)


class _Mails:
    """How many more a worker may claim, in all and of a tenant."""

    def __init__(self, connection: Connection, worker: str, limits: Limits) -> None:
        claimed = fetch_at_once(connection, "worker, tenant, count", _MAILS, ())
        self.room: int = limits.mails - sum(count for of, _, count in claimed if of == worker)
        self._most_of_tenant = max(1, limits.per_tenant // 2)
        self._of_tenant = Counter[str]()
        for _, tenant, count in claimed:
            self._of_tenant[tenant] += count

    def room_of(self, tenant: str) -> int:
        room: int = min(self.room, self._most_of_tenant - self._of_tenant[tenant])
        return room

    def take(self, tenant: str, count: int) -> None:
        self.room -= count
        self._of_tenant[tenant] += count


def release(connection: Connection, fences: Sequence[int]) -> set[int]:
    """Give claims up; returns the fences of those that still stood."""
    given = (json.dumps(list(fences)),)
    those = "dispatcher_claims WHERE fence IN (SELECT value FROM json_each(?))"
    stood = fetch_at_once(connection, "fence", those, given)
    driver(connection).execute(f"DELETE FROM {those}", given)
    return {fence for (fence,) in stood}


def expired(connection: Connection, now: int) -> list[Claim]:
    """Claims whose lease has ended: their workers are taken for dead."""
    rows = driver(connection).execute(
        f"SELECT {_COLUMNS} FROM dispatcher_claims WHERE leased_until < ? ORDER BY leased_until, fence",
        (now,),
    )
    return [Claim(*row) for row in rows]


def next_change(connection: Connection, now: int) -> int | None:
    """When, after now, time alone will change what can be claimed; None for never."""
    (found,) = driver(connection).execute(_NEXT_CHANGE, (now,)).fetchone()
    return None if found is None else int(found)


def claimed(connection: Connection, delivery_ids: Sequence[str]) -> set[str]:
    """Those of these deliveries that are claimed."""
    those = "dispatcher_claims WHERE delivery_id IN (SELECT value FROM json_each(?))"
    found = fetch_at_once(connection, "delivery_id", those, (json.dumps(list(delivery_ids)),))
    return {delivery_id for (delivery_id,) in found}


def has_mail(connection: Connection) -> bool:
    """Whether there are endpoints of mail."""
    found = driver(connection).execute(f"SELECT 1 FROM dispatcher_endpoints WHERE url = '{MAIL_URL}' LIMIT 1")
    return found.fetchone() is not None


def tenant_of(endpoint_id: str) -> str:
    return endpoint_id.partition("/")[0]


def _insert(connection: Connection, chosen: Sequence[tuple[Any, ...]]) -> list[Claim]:
    """Claims of (endpoint, lane, delivery, position, attempt, worker, started_at, leased_until)."""
    (last,) = driver(connection).execute(_LAST_FENCE).fetchone()
    made = [Claim(fence, *one) for fence, one in enumerate(chosen, last + 1)]
    insert_rows(connection, claims_table, made)
    return made
