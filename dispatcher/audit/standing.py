"""How things stand now: deliveries, dead letters, endpoints."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import msgspec

from dispatcher.audit.names import bare_id, event_name, stored, told, unknown_event
from dispatcher.core import status as core_status
from dispatcher.core.entities import Delivery, Endpoint
from dispatcher.core.state import State
from dispatcher.delivery.accepting import check_name
from dispatcher.errors import NotFound
from dispatcher.log import inbox
from dispatcher.log.open import Database, Target, reading
from dispatcher.log.read import last_entry, log_kind
from dispatcher.log.views import ViewSource

MOST_COUNTED = 10_000
"""Of the events behind one: beyond that it is only said that there are many."""


@contextmanager
def standing(database: Database | Target) -> Iterator[State]:
    """The present state of a database's log, read as it is asked for."""
    with reading(database) as connection:
        position, ts = last_entry(connection)
        yield State(log_kind(connection) or "simulated", ViewSource(connection), position=position, ts=ts)


def status(state: State, delivery_id: str) -> dict[str, Any]:
    """What `run`'s status says of one delivery, with what else is known of it. Raises NotFound.

    A live one tells, too, how many wait behind it and who sends it.
    """
    delivery = state.delivery(delivery_id)
    if delivery is None:
        raise unknown_event(state, delivery_id)
    waits_behind = state.head(delivery.lane) if delivery.state == "pending" else None
    found = {
        "event_id": delivery.id,
        "endpoint_id": delivery.lane.endpoint.id,
        **core_status.status(delivery),
        "max_attempts": delivery.lane.endpoint.policy.max_attempts,
        "last_status": delivery.last_status,
        "last_error": delivery.last_error,
        "waits_behind": None if waits_behind in (None, delivery) else waits_behind.id,
        "disabled": delivery.lane.endpoint.disabled,
    }
    return found if state.kind == "simulated" else {**found, **_live(state, delivery)}


def _live(state: State, delivery: Delivery) -> dict[str, Any]:
    source, lane = stored(state), delivery.lane
    sender = source.sender(delivery.id)
    blocks = 0
    if delivery.state == "pending":
        blocks = source.pending_behind(lane.endpoint.id, lane.key, delivery.order, MOST_COUNTED)
    return {
        "event_type": delivery.event_type,
        "blocks": blocks,
        "in_flight_since": None if sender is None else sender[1],
        "worker": None if sender is None else sender[0],
        "erased": delivery.erased,
        **({"scrubbed": source.scrubbed(delivery.order)} if delivery.erased else {}),
    }


def status_of(state: State, tenant: str, event_id: str, endpoint_id: str | None = None) -> dict[str, Any]:
    """`status` of a live event by its ids, as they are given and shown.

    Of one that an application has accepted, and that is not in the log yet, the state is `accepted`, or
    `refused`, with the reason. Raises NotFound; AmbiguousEvent without the endpoint's id.
    """
    try:
        return told(status(state, event_name(state, tenant, event_id, endpoint_id)))
    except NotFound:
        name = None if endpoint_id is None else check_name(tenant, endpoint_id)
        accepted = inbox.find(stored(state).connection, tenant, name, event_id)
        if accepted is None:
            raise
    return {
        "tenant": tenant,
        "event_id": event_id,
        "endpoint_id": (accepted.endpoint_id or name or "").rpartition("/")[2] or None,
        "state": "accepted" if accepted.refused is None else "refused",
        "attempts": 0,
        **dict.fromkeys(("next_attempt_at", "max_attempts", "last_status", "last_error", "waits_behind")),
        **dict.fromkeys(("disabled", "in_flight_since", "worker")),
        "event_type": accepted.event_type,
        "blocks": 0,
        "erased": False,
        "accepted_at": accepted.accepted_at,
        "refused": accepted.refused,
    }


def dead_letters(state: State, endpoint_id: str | None = None) -> list[dict[str, Any]]:
    """Dead deliveries, of one endpoint or of all, in the order of their latest death. Raises NotFound.

    Live ones tell when they died.
    """
    dead = state.all_dead() if endpoint_id is None else state.dead(_endpoint(state, endpoint_id))
    letters = [_dead_letter(delivery) for delivery in dead]
    if state.kind == "live":
        times = stored(state).times(letter["position"] for letter in letters)
        for letter in letters:
            letter["died_at"] = times.get(letter["position"])
    return letters


def endpoints(state: State) -> list[dict[str, Any]]:
    """Every endpoint, in the order of registration."""
    return [_shown(endpoint) for endpoint in stored(state).all_endpoints()]


def endpoint(state: State, endpoint_id: str) -> dict[str, Any]:
    """One endpoint with its policy, what is first in it, and its counts. Raises NotFound.

    A live one tells more of its settings.
    """
    found = _endpoint(state, endpoint_id)
    first = None if found.disabled is not None else state.first_due(found)
    settings: dict[str, Any] = {"order": found.order}
    if state.kind == "live":
        for name in ("concurrency", "disable_when_gone", "erase", "types", "body_format", "keep_payloads"):
            settings[name] = getattr(found, name)
    return {
        **_shown(found),
        "next_due_at": None if first is None else first[0],
        **settings,
        "policy": msgspec.to_builtins(found.policy),
    }


def _endpoint(state: State, endpoint_id: str) -> Endpoint:
    found = state.endpoint(endpoint_id)
    if found is None:
        raise NotFound(
            f"no endpoint {bare_id(state, endpoint_id)!r} is registered",
            "`dispatcher endpoint list` shows those there are.",
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


def in_inbox(state: State) -> list[dict[str, Any]]:
    """What waits to be taken into the log, or could not be, the oldest first.

    Its number there, when it was accepted, for whom (endpoint_id is None of a published one), what it is, and
    `refused`: why, or None.
    """
    return [
        {
            "number": event.n,
            "accepted_at": event.accepted_at,
            "tenant": event.tenant,
            "endpoint_id": None if event.endpoint_id is None else event.endpoint_id.rpartition("/")[2],
            "event_id": event.event_id,
            "event_type": event.event_type,
            "actor": event.actor,
            "refused": event.refused,
        }
        for event in inbox.every(stored(state).connection)
    ]


class Backlog(NamedTuple):
    """What is still to be delivered."""

    pending: int
    """Events, without those that are held; with those that are only accepted."""
    next_due_at: int | None
    """In the log's unit; None when nothing is pending."""
    ts: int | None
    """Of the log's last entry; None when there is none."""

    def due_in(self, now: int) -> int | None:
        """How long until the first is due; 0 or less if it is. No clock is before the last entry."""
        return None if self.next_due_at is None else self.next_due_at - max(now, self.ts or now)


def backlog(database: Target, *, mail: bool = True) -> Backlog:
    """Without what is for endpoints of mail, if no mail is sent."""
    with standing(database) as state:
        assert isinstance(state.source, ViewSource)
        accepted = inbox.count_waiting(state.source.connection)
        pending, due = state.source.backlog(mail)
        return Backlog(pending + accepted, 0 if accepted else due, state.ts)
