"""What must hold at every moment, whatever happened: checked from the log and the claims alone.

A model of its own, which shares nothing with the product: it reads each entry once, as JSON.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FINAL = ("delivered", "dead", "cancelled")


class Broken(AssertionError):
    """An invariant does not hold."""


def must(holds: object, what: str, *about: object) -> None:
    if not holds:
        raise Broken(" ".join([what, *map(str, about)]))


@dataclass
class Endpoint:
    policy: dict[str, Any]
    order: str = "strict"
    concurrency: int = 8
    erase: str = "never"
    disabled: bool = False


@dataclass
class Delivery:
    endpoint: str
    lane: str
    order: int
    due: int
    state: str = "pending"
    attempts: int = 0
    erased: bool = False
    answered: int = 0
    tried: int = 0
    """Attempts, lost ones too, and releases, ever: claims that have ended."""


@dataclass
class Checker:
    database: Path
    arrivals: Counter[str] = field(default_factory=Counter)
    """Requests at receivers, by delivery."""
    endpoints: dict[str, Endpoint] = field(default_factory=dict)
    deliveries: dict[str, Delivery] = field(default_factory=dict)
    claims: dict[int, str] = field(default_factory=dict)
    """Of those that stand: the delivery by the fence."""
    leases: dict[str, int] = field(default_factory=dict)
    """Of the deliveries that are claimed: until when."""
    fences: int = 0
    position: int = 0
    ts: int = 0
    revived: set[str] = field(default_factory=set)
    """In the latest transaction; and what was disabled in it."""
    disabled: set[str] = field(default_factory=set)
    holders: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Of the deliveries that are claimed: the fence, and which worker has it."""
    claimed: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Claims ever, by worker and delivery; and requests sent."""
    requests: Counter[tuple[str, str]] = field(default_factory=Counter)
    in_flight: dict[tuple[str, str], set[int]] = field(default_factory=dict)
    """By lane: the fences of requests that have no answer yet."""
    reached: dict[tuple[str, str], int] = field(default_factory=dict)
    """By lane: the order of the latest event that came to the receiver."""
    ever_revived: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.connection = sqlite3.connect(self.database, isolation_level=None)

    def close(self) -> None:
        self.connection.close()

    def look(self, per_tenant: int) -> None:
        """Check what was appended and claimed since the last time."""
        # In one transaction a claim may come before what would have forbidden it.
        self.revived, self.disabled = set(), set()
        before = {name: endpoint.concurrency for name, endpoint in self.endpoints.items()}
        for position, ts, kind, endpoint, delivery, data in self.connection.execute(
            "SELECT position, ts, type, endpoint_id, delivery_id, data FROM dispatcher_log"
            " WHERE position > ? ORDER BY position",
            (self.position,),
        ).fetchall():
            must(position == self.position + 1, "positions have no gaps:", position)
            must(ts >= self.ts, "time never goes back:", position)
            self.position, self.ts = position, ts
            handle = getattr(self, f"_{kind}", None)
            if handle is not None:
                handle(json.loads(data), ts, position, endpoint, delivery)
        self._look_at_claims(per_tenant, before)
        self._count()

    def _look_at_claims(self, per_tenant: int, before: dict[str, int]) -> None:
        rows = self.connection.execute(
            "SELECT fence, endpoint_id, lane, delivery_id, attempt, started_at, leased_until, worker"
            " FROM dispatcher_claims"
        ).fetchall()
        standing = {row[0]: row[3] for row in rows}
        self.leases = {row[3]: row[6] for row in rows}
        self.holders = {row[3]: (row[0], row[7]) for row in rows}
        for fence, endpoint_id, lane, delivery_id, attempt, started_at, leased_until, worker in rows:
            if self.claims.get(fence) == delivery_id:
                continue
            self.claimed[worker, delivery_id] += 1
            must(fence > self.fences, "a fence is never used again:", fence)
            endpoint, delivery = self.endpoints[endpoint_id], self.deliveries[delivery_id]
            held = endpoint.disabled and endpoint_id not in self.disabled
            must(not held, "no attempt at a disabled endpoint:", delivery_id)
            must(delivery.state == "pending", "no attempt once it is", delivery.state, delivery_id)
            must(not delivery.erased, "no attempt once it is erased:", delivery_id)
            must(
                delivery.due <= started_at,
                "no attempt before its time:",
                delivery_id,
                delivery.due,
                started_at,
            )
            must(attempt == delivery.attempts + 1, "attempts are counted:", delivery_id)
            must(leased_until >= started_at + 40_000, "a lease outlasts the deadline:", delivery_id)
            must(lane == delivery.lane, "a claim is in its delivery's lane:", delivery_id)
            ahead = [
                i
                for i, other in self.deliveries.items()
                if other.endpoint == endpoint_id
                and other.lane == lane
                and other.state == "pending"
                and other.order < delivery.order
                and i not in self.revived
            ]
            must(not ahead, "no attempt before those ahead of it:", delivery_id, ahead)
            at_endpoint = [row for row in rows if row[1] == endpoint_id]
            most = max(endpoint.concurrency, before.get(endpoint_id, 0))
            must(len(at_endpoint) <= most, "so many at once at an endpoint:", endpoint_id)
            must(
                sum(row[1:3] == (endpoint_id, lane) for row in rows) == 1,
                "one at once in a lane:",
                delivery_id,
            )
            tenant = endpoint_id.partition("/")[0]
            at_tenant = [row for row in rows if row[1].partition("/")[0] == tenant]
            must(len(at_tenant) <= per_tenant, "so many at once for a tenant:", tenant)
        self.fences = max([self.fences, *standing])
        self.claims = standing

    def _count(self) -> None:
        counted = self.connection.execute(
            "SELECT coalesce(sum(pending), 0), coalesce(sum(delivered), 0), coalesce(sum(dead), 0),"
            " coalesce(sum(cancelled), 0) FROM dispatcher_endpoints"
        ).fetchone()
        states = [d.state for d in self.deliveries.values()]
        expected = tuple(map(states.count, ("pending", *FINAL)))
        must(counted == expected, "conservation:", counted, expected)

    def sent(self, worker: str, delivery_id: str) -> int | None:
        """A worker sends a request; the fence of its claim, None if that was taken from it meanwhile."""
        self.requests[worker, delivery_id] += 1
        claims = self.claimed[worker, delivery_id]
        must(self.requests[worker, delivery_id] <= claims, "one request for each claim:", delivery_id)
        fence, holder = self.holders.get(delivery_id, (None, None))
        if fence is None or holder != worker:
            return None
        others = self.in_flight.setdefault(self._lane(delivery_id), set())
        must(not others & self.claims.keys(), "never two requests in flight in a lane:", delivery_id)
        others.add(fence)
        return fence

    def answered(self, delivery_id: str, fence: int | None) -> None:
        if fence is not None:
            self.in_flight[self._lane(delivery_id)].discard(fence)

    def arrived(self, delivery_id: str, fence: int | None) -> None:
        """A request is at the receiver, sent under a claim or after that was taken away."""
        must(delivery_id in self.deliveries, "nothing is sent that is not in the log:", delivery_id)
        self.arrivals[delivery_id] += 1
        if fence not in self.claims:
            return  # One that was lost or released may come late.
        lane, order = self._lane(delivery_id), self.deliveries[delivery_id].order
        in_order = order >= self.reached.get(lane, 0) or delivery_id in self.ever_revived
        must(in_order, "events come to the receiver in the order of their lane:", delivery_id)
        self.reached[lane] = max(order, self.reached.get(lane, 0))

    def _lane(self, delivery_id: str) -> tuple[str, str]:
        delivery = self.deliveries[delivery_id]
        return delivery.endpoint, delivery.lane

    def look_at_the_end(self) -> None:
        for delivery_id, count in self.arrivals.items():
            explained = count <= self.deliveries[delivery_id].tried
            must(explained, "each request is an attempt in the log, lost and released ones too:", delivery_id)
        self.look_at_views()

    def look_at_views(self) -> None:
        """Whether each delivery's row says what the entries came to."""
        rows = self.connection.execute(
            "SELECT delivery_id, state, attempts, erased FROM dispatcher_delivery_status"
        ).fetchall()
        shown = {row[0]: row[1:] for row in rows}
        for delivery_id, delivery in self.deliveries.items():
            state = delivery.state
            if state == "pending" and self.endpoints[delivery.endpoint].disabled:
                state = "held"
            expected = (state, delivery.attempts, int(delivery.erased))
            must(shown[delivery_id] == expected, "the views are the fold:", delivery_id, shown[delivery_id])

    def _EndpointRegistered(self, data: Any, ts: int, position: int, endpoint: str, delivery: None) -> None:
        must(endpoint not in self.endpoints, "registered once:", endpoint)
        known = {name: data[name] for name in ("policy", "order", "concurrency", "erase") if name in data}
        self.endpoints[endpoint] = Endpoint(**known)

    def _EndpointUpdated(self, data: Any, ts: int, position: int, endpoint: str, delivery: None) -> None:
        for name in ("policy", "order", "concurrency", "erase"):
            if name in data:
                setattr(self.endpoints[endpoint], name, data[name])

    def _EndpointDisabled(self, data: Any, ts: int, position: int, endpoint: str, delivery: None) -> None:
        must(not self.endpoints[endpoint].disabled, "disabled once:", endpoint)
        self.endpoints[endpoint].disabled = True
        self.disabled.add(endpoint)

    def _EndpointEnabled(self, data: Any, ts: int, position: int, endpoint: str, delivery: None) -> None:
        must(self.endpoints[endpoint].disabled, "enabled once:", endpoint)
        self.endpoints[endpoint].disabled = False
        for one in self.deliveries.values():
            if one.endpoint == endpoint and one.state == "pending":
                one.due = ts

    def _Enqueued(self, data: Any, ts: int, position: int, endpoint: str, delivery: str) -> None:
        must(delivery not in self.deliveries, "enqueued once:", delivery)
        self.deliveries[delivery] = Delivery(endpoint, data.get("lane", ""), position, ts)

    def _AttemptRecorded(self, data: Any, ts: int, position: int, endpoint: str, delivery: str) -> None:
        one, policy = self.deliveries[delivery], self.endpoints[endpoint].policy
        must(delivery in self.claims.values(), "only what was claimed is recorded:", delivery)
        must(one.state == "pending", "no attempt is recorded once it is", one.state, delivery)
        must(data["attempt"] == one.attempts + 1, "attempts are counted:", delivery)
        if data.get("error") == "lost":
            must(self.leases[delivery] < ts, "an attempt is lost when its lease has ended:", delivery)
        self._end_claim(delivery)
        one.attempts += 1
        one.tried += 1
        one.answered += data["status"] >= 100
        must(one.answered <= self.arrivals[delivery], "an answer is recorded once there was one:", delivery)
        if data["decision"] == "retry":
            must(one.attempts < policy["max_attempts"], "no more attempts than the policy's:", delivery)
            must(data["retry_at"] > ts, "a retry is in the future:", delivery)
            wait = policy["waits"][min(one.attempts, len(policy["waits"])) - 1]
            must(data["retry_at"] - ts >= wait, "a wait runs from when it was recorded:", delivery)
            one.due = data["retry_at"]
        else:
            one.state = data["decision"]

    def _AttemptReleased(self, data: Any, ts: int, position: int, endpoint: str, delivery: str) -> None:
        must(delivery in self.claims.values(), "only what was claimed is released:", delivery)
        self._end_claim(delivery)
        self.deliveries[delivery].tried += 1

    def _end_claim(self, delivery: str) -> None:
        self.claims = {fence: claimed for fence, claimed in self.claims.items() if claimed != delivery}

    def _Revived(self, data: Any, ts: int, position: int, endpoint: str, delivery: str) -> None:
        one = self.deliveries[delivery]
        must(one.state == "dead" and not one.erased, "only the dead are revived:", delivery)
        one.state, one.attempts, one.due = "pending", 0, ts
        self.revived.add(delivery)
        self.ever_revived.add(delivery)

    def _Cancelled(self, data: Any, ts: int, position: int, endpoint: str, delivery: str) -> None:
        must(self.deliveries[delivery].state == "pending", "only what is pending is cancelled:", delivery)
        must(delivery not in self.claims.values(), "nothing in flight is cancelled:", delivery)
        self.deliveries[delivery].state = "cancelled"

    def _PayloadErased(self, data: Any, ts: int, position: int, endpoint: str, delivery: str) -> None:
        one = self.deliveries[delivery]
        must(not one.erased, "erased once:", delivery)
        must(one.state != "pending", "what is erased is not pending:", delivery)
        one.erased = True
