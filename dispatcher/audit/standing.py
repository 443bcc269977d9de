"""How things stand now: deliveries, dead letters, endpoints."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from dispatcher.audit.history import unknown_delivery
from dispatcher.core import status as core_status
from dispatcher.core.entities import Delivery, Endpoint
from dispatcher.core.state import State
from dispatcher.errors import NotFound
from dispatcher.log.open import Database, Target
from dispatcher.log.read import last_entry, log_kind
from dispatcher.log.views import ViewSource


@contextmanager
def standing(database: Target) -> Iterator[State]:
    """The present state of a database's log, read as it is asked for."""
    with Database(database, "read") as opened, opened.read() as connection:
        position, ts = last_entry(connection)
        yield State(log_kind(connection) or "simulated", ViewSource(connection), position=position, ts=ts)


def status(database: Target, delivery_id: str) -> dict[str, Any]:
    """What `run`'s status says of one delivery, with what else is known of it. Raises NotFound."""
    with standing(database) as state:
        delivery = state.delivery(delivery_id)
        if delivery is None:
            raise unknown_delivery(delivery_id)
        waits_behind = state.head(delivery.lane) if delivery.state == "pending" else None
        return {
            "event_id": delivery.id,
            "endpoint_id": delivery.lane.endpoint.id,
            **core_status.status(delivery),
            "max_attempts": delivery.lane.endpoint.policy.max_attempts,
            "last_status": delivery.last_status,
            "last_error": delivery.last_error,
            "waits_behind": None if waits_behind in (None, delivery) else waits_behind.id,
            "disabled": delivery.lane.endpoint.disabled,
        }


def dead_letters(database: Target, endpoint_id: str | None = None) -> list[dict[str, Any]]:
    """Dead deliveries, of one endpoint or of all, in the order of their latest death. Raises NotFound."""
    with standing(database) as state:
        if endpoint_id is None:
            dead = state.all_dead()
        else:
            dead = state.dead(_endpoint(state, endpoint_id))
        return [_dead_letter(delivery) for delivery in dead]


def endpoints(database: Target) -> list[dict[str, Any]]:
    """Every endpoint, in the order of registration."""
    with standing(database) as state:
        source = state.source
        assert isinstance(source, ViewSource)
        return [_shown(endpoint) for endpoint in source.all_endpoints()]


def endpoint(database: Target, endpoint_id: str) -> dict[str, Any]:
    """One endpoint with its policy, what is first in it, and its counts. Raises NotFound."""
    with standing(database) as state:
        found = _endpoint(state, endpoint_id)
        first = None if found.disabled is not None else state.first_due(found)
        return {
            **_shown(found),
            "next_due_at": None if first is None else first[0],
            "order": found.order,
            "policy": msgspec.to_builtins(found.policy),
        }


def _endpoint(state: State, endpoint_id: str) -> Endpoint:
    found = state.endpoint(endpoint_id)
    if found is None:
        raise NotFound(
            f"no endpoint {endpoint_id!r} is registered", "`dispatcher endpoint list` shows those there are."
        )
    return found


def _shown(endpoint: Endpoint) -> dict[str, Any]:
    held = endpoint.pending if endpoint.disabled is not None else 0
    return {
        "endpoint_id": endpoint.id,
        "url": endpoint.url,
        "state": "enabled" if endpoint.disabled is None else "disabled",
        "disabled": endpoint.disabled,
        "pending": endpoint.pending - held,
        "held": held,
        "delivered": endpoint.delivered,
        "dead": endpoint.dead,
        "cancelled": endpoint.cancelled,
    }


def _dead_letter(delivery: Delivery) -> dict[str, Any]:
    return {
        "event_id": delivery.id,
        "endpoint_id": delivery.lane.endpoint.id,
        "attempts": delivery.attempts,
        "last_status": delivery.last_status,
        "last_error": delivery.last_error,
        "position": delivery.death,
    }
