"""Ids as people give and see them: those of a live log hold tenant and endpoint, too."""

from __future__ import annotations

from typing import Any

from dispatcher.core.state import State
from dispatcher.delivery.accepting import check_name
from dispatcher.errors import AmbiguousEvent, NotFound, WrongKind
from dispatcher.log.views import ViewSource

DEFAULT_TENANT = "default"


def endpoint_name(state: State, tenant: str, endpoint_id: str) -> str:
    """The log's id of a tenant's endpoint."""
    if state.kind == "live":
        return check_name(tenant, endpoint_id)
    if tenant != DEFAULT_TENANT:
        raise WrongKind("a simulated log has no tenants", "Leave --tenant out.")
    return endpoint_id


def event_name(state: State, tenant: str, event_id: str, endpoint_id: str | None = None) -> str:
    """The log's id of an event, which is looked for at each endpoint of the tenant unless one is given.

    Raises NotFound; and AmbiguousEvent when several endpoints have one of this id.
    """
    if endpoint_id is not None:
        endpoint = endpoint_name(state, tenant, endpoint_id)
        if state.kind == "live":
            return check_name(tenant, endpoint_id, event_id)
        found = state.delivery(event_id)
        if found is None or found.lane.endpoint.id != endpoint:
            raise unknown_event(state, event_id)
        return event_id
    if state.kind == "simulated":
        return endpoint_name(state, tenant, event_id)
    check_name(tenant, event_id)
    source = stored(state)
    names = [f"{endpoint}/{event_id}" for endpoint in source.endpoints_of(tenant)]
    there = [row.endpoint_id for row in source.deliveries(names)]
    if not there:
        raise unknown_event(state, event_id)
    if len(there) > 1:
        at = ", ".join(sorted(endpoint.partition("/")[2] for endpoint in there))
        raise AmbiguousEvent(f"there is an event {event_id!r} at several endpoints: {at}")
    return f"{there[0]}/{event_id}"


def unknown_event(state: State, delivery_id: str) -> NotFound:
    return NotFound(
        f"no event {bare_id(state, delivery_id)!r} is in the log",
        "Check the id; `dispatcher log tail` shows recent ones, `dispatcher inbox` those on their way.",
    )


def bare_id(state: State, log_id: str) -> str:
    """The id as it was given, of what the log calls so."""
    return log_id.rpartition("/")[2] if state.kind == "live" else log_id


def stored(state: State) -> ViewSource:
    """Where a state that stands is read from."""
    assert isinstance(state.source, ViewSource)
    return state.source


def without_tenant(shown: dict[str, Any]) -> dict[str, Any]:
    """What is shown of a live log, with ids as they were given."""
    names = ("endpoint_id", "event_id", "delivery_id", "waits_behind")
    return shown | {name: shown[name].rpartition("/")[2] for name in names if shown.get(name) is not None}


def told(shown: dict[str, Any]) -> dict[str, Any]:
    """What is shown of a live log: the tenant apart, and ids as they were given."""
    return {"tenant": shown["endpoint_id"].partition("/")[0], **without_tenant(shown)}
