"""What an entry changes. The state is what folding the log through here comes to."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from msgspec import UNSET

from dispatcher.core.entities import Delivery, Endpoint
from dispatcher.core.entries import (
    AttemptRecorded,
    AttemptReleased,
    Body,
    Cancelled,
    EndpointDisabled,
    EndpointEnabled,
    EndpointRegistered,
    EndpointUpdated,
    Enqueued,
    Entry,
    LogOpened,
    PayloadErased,
    Revived,
)
from dispatcher.core.state import State
from dispatcher.core.window import Item

Changed = Delivery | Endpoint | None
"""A delivery (with it its lane and its endpoint), an endpoint alone, or neither."""


Id = str | None
SETTINGS = tuple(name for name in EndpointUpdated.__struct_fields__ if name != "actor")


class Inconsistent(ValueError):
    """An entry that cannot follow those before it."""


def evolve(state: State, entry: Entry) -> Changed:
    """Take the log's next entry into the state; reports what it changed.

    What the entry is about must be loaded, as it is after `decide`, or in a fold from the start.
    Raises Inconsistent when the entry speaks of what does not exist.
    """
    return take(state, entry.ts, entry.endpoint_id, entry.delivery_id, entry.body)


def take(state: State, ts: int, endpoint_id: str | None, delivery_id: str | None, body: Body) -> Changed:
    """`evolve`, for an entry in its parts: a fold makes no Entry of each."""
    state.position += 1
    state.ts = ts
    try:
        return _EVOLVE[type(body)](state, ts, endpoint_id, delivery_id, body)
    except KeyError:
        named = " of ".join(repr(i) for i in (delivery_id, endpoint_id) if i is not None)
        raise Inconsistent(
            f"{type(body).__name__} speaks of {named or 'nothing'}, which is unknown"
        ) from None


def _opened(state: State, ts: int, endpoint_id: Id, delivery_id: Id, body: LogOpened) -> Changed:
    if state.position != 1:
        raise Inconsistent("LogOpened stands only at the start of a log")
    state.kind = body.kind
    return None


def _registered(state: State, ts: int, endpoint_id: Id, delivery_id: Id, body: EndpointRegistered) -> Changed:
    if endpoint_id is None:
        raise Inconsistent("a registration without an id")
    if endpoint_id in state.endpoints:
        raise Inconsistent(f"{endpoint_id!r} is registered already")
    endpoint = state.endpoints[endpoint_id] = Endpoint(
        endpoint_id,
        state.position,
        body.url,
        body.policy,
        body.url_digest,
        body.order,
        body.concurrency,
        body.erase,
        body.disable_when_gone,
        body.types,
        body.body_format,
        body.keep_payloads,
    )
    return endpoint


def _updated(state: State, ts: int, endpoint_id: Id, delivery_id: Id, body: EndpointUpdated) -> Changed:
    endpoint = state.endpoints[endpoint_id]  # type: ignore[index]
    for name in SETTINGS:
        value = getattr(body, name)
        if value is not UNSET:
            setattr(endpoint, name, value)
    return endpoint


def _enqueued(state: State, ts: int, endpoint_id: Id, delivery_id: Id, body: Enqueued) -> Changed:
    deliveries = state.deliveries
    if delivery_id is None or delivery_id in deliveries:
        raise Inconsistent(f"{delivery_id!r} is enqueued already")
    endpoint = state.endpoints[endpoint_id]  # type: ignore[index]
    lane = endpoint.lanes.get(body.lane) or state.lane(endpoint, body.lane)
    order = state.position
    delivery = deliveries[delivery_id] = Delivery(
        delivery_id,
        lane,
        order,
        ts,
        endpoint.resumptions,
        body.outcomes,
        body.seed,
        body.digest,
        body.event_type,
    )
    heappush(lane.pending.heap, (order, delivery_id))
    endpoint.pending += 1
    return delivery


def _attempted(state: State, ts: int, endpoint_id: Id, delivery_id: Id, body: AttemptRecorded) -> Changed:
    delivery = state.deliveries[delivery_id]  # type: ignore[index]
    if delivery.state != "pending":
        raise _not_pending(delivery)
    delivery.attempts = body.attempt
    delivery.last_status = body.status
    delivery.last_error = body.error
    lane = delivery.lane
    endpoint = lane.endpoint
    decision = body.decision
    if decision == "retry":
        if body.retry_at is None:
            raise Inconsistent("a retry without its time")
        delivery.due_at = body.retry_at
        delivery.resumption = endpoint.resumptions
        return delivery
    endpoint.pending -= 1
    if decision == "delivered":
        delivery.state = "delivered"
        endpoint.delivered += 1
    else:
        delivery.state = "dead"
        delivery.death = state.position
        endpoint.dead += 1
        endpoint.dead_ids[delivery.id] = state.dead_ids[delivery.id] = None
    _leave(lane.pending.heap, delivery.order)
    return delivery


def _released(state: State, ts: int, endpoint_id: Id, delivery_id: Id, body: AttemptReleased) -> Changed:
    return state.deliveries[delivery_id]  # type: ignore[index]


def _disabled(state: State, ts: int, endpoint_id: Id, delivery_id: Id, body: EndpointDisabled) -> Changed:
    endpoint = state.endpoints[endpoint_id]  # type: ignore[index]
    endpoint.disabled = body.reason
    return endpoint


def _enabled(state: State, ts: int, endpoint_id: Id, delivery_id: Id, body: EndpointEnabled) -> Changed:
    endpoint = state.endpoints[endpoint_id]  # type: ignore[index]
    endpoint.disabled = None
    endpoint.resumptions += 1
    endpoint.resumed_at = ts
    return endpoint


def _revived(state: State, ts: int, endpoint_id: Id, delivery_id: Id, body: Revived) -> Changed:
    delivery = state.deliveries[delivery_id]  # type: ignore[index]
    if delivery.state != "dead":
        raise Inconsistent(f"{delivery.id!r} is revived without being dead")
    endpoint = delivery.lane.endpoint
    delivery.state = "pending"
    delivery.attempts = 0
    delivery.death = None
    delivery.due_at = ts
    delivery.resumption = endpoint.resumptions
    endpoint.dead -= 1
    endpoint.pending += 1
    for ids in (endpoint.dead_ids, state.dead_ids):
        ids.pop(delivery.id, None)
        if not ids:
            ids.clear()  # an emptied dict still walks over the places of all it once held
    delivery.lane.pending.add((delivery.order, delivery.id))
    return delivery


def _cancelled(state: State, ts: int, endpoint_id: Id, delivery_id: Id, body: Cancelled) -> Changed:
    delivery = state.deliveries[delivery_id]  # type: ignore[index]
    if delivery.state != "pending":
        raise _not_pending(delivery)
    lane = delivery.lane
    delivery.state = "cancelled"
    lane.endpoint.pending -= 1
    lane.endpoint.cancelled += 1
    _leave(lane.pending.heap, delivery.order)
    return delivery


def _erased(state: State, ts: int, endpoint_id: Id, delivery_id: Id, body: PayloadErased) -> Changed:
    delivery = state.deliveries[delivery_id]  # type: ignore[index]
    delivery.erased = True
    return delivery


def _leave(pending: list[Item], order: int) -> None:
    """Drop a delivery from the front of its lane; elsewhere it is passed over when it comes to the front."""
    if pending and pending[0][0] == order:
        heappop(pending)


def _not_pending(delivery: Delivery) -> Inconsistent:
    return Inconsistent(f"{delivery.id!r} is {delivery.state} and cannot be attempted or cancelled")


_EVOLVE: dict[type[Body], Callable[[State, int, Id, Id, Any], Changed]] = {
    LogOpened: _opened,
    EndpointRegistered: _registered,
    EndpointUpdated: _updated,
    Enqueued: _enqueued,
    AttemptRecorded: _attempted,
    AttemptReleased: _released,
    EndpointDisabled: _disabled,
    EndpointEnabled: _enabled,
    Revived: _revived,
    Cancelled: _cancelled,
    PayloadErased: _erased,
}
