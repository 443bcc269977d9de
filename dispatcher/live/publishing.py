"""One event for every endpoint that wants its type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from dispatcher.core.entries import BodyFormat
from dispatcher.core.operations import Enqueue
from dispatcher.delivery.accepting import check_event_type, check_fields, check_name, new_event_id
from dispatcher.delivery.envelope import Occurrence, enveloped
from dispatcher.delivery.settings import Payload, encode
from dispatcher.live.events import Prepared, accept, check_repeat, given_payload, new_seed
from dispatcher.log.commit import Commit
from dispatcher.log.vault import Vault
from dispatcher.log.views import Subscriber, ViewSource


class Published(NamedTuple):
    """What came of publishing an event."""

    event_id: str
    endpoints: tuple[str, ...] | None
    """Those that want it, in the order of registration: each has it now. None when that is found out later:
    it was accepted within a transaction of the caller's."""


class Publication(Struct, frozen=True):
    """A published event, before it is known who wants it."""

    tenant: str
    event_id: str
    type: str
    given: Payload
    order_key: str | None
    """Its digest."""
    actor: str | None
    at: int
    """When it was published, in milliseconds since 1970."""
    source: str

    def __repr__(self) -> str:
        return f"Publication({self.event_id})"


decode_publication = msgspec.msgpack.Decoder(Publication).decode


def publication(
    vault: Vault,
    type: str,
    payload: Any,
    *,
    at: int,
    source: str | None,
    tenant: str,
    event_id: str | None,
    content_type: str | None,
    headers: Sequence[tuple[str, str]],
    order_key: str | None,
    actor: str | None,
) -> Publication:
    """Raises Refused for what can never be accepted."""
    check_event_type(type)
    event_id = new_event_id() if event_id is None else event_id
    check_name(tenant, event_id)
    check_fields(Enqueue("", "", actor=actor))
    given = given_payload(payload, content_type, headers, type)
    key = None if order_key is None else vault.digest("order key", order_key)
    return Publication(tenant, event_id, type, given, key, actor, at, source or f"/dispatcher/{tenant}")


def prepare_for(
    vault: Vault, event: Publication, subscribers: Iterable[Subscriber]
) -> dict[Subscriber, Prepared]:
    """An event's deliveries, encrypted. Raises Refused when a format has no place for its payload."""
    content = encode(event.given)
    told = Occurrence(event.event_id, event.type, event.at, event.source)
    plain: dict[BodyFormat | None, bytes] = {}
    prepared = {}
    for subscriber in subscribers:
        endpoint_id, body_format, order = subscriber
        if body_format not in plain:
            plain[body_format] = encode(enveloped(event.given, body_format, told))
        delivery_id = f"{endpoint_id}/{event.event_id}"
        sealed = vault.seal_payload(delivery_id, plain[body_format], content)
        key = None if order == "none" else event.order_key
        facts = None, key, new_seed(), sealed.digest, event.actor, event.type
        operation = Enqueue(endpoint_id, delivery_id, *facts)
        prepared[subscriber] = Prepared(event.event_id, operation, content, sealed)
    return prepared


def fan_out(
    commit: Commit, vault: Vault, event: Publication, prepared: Mapping[Subscriber, Prepared]
) -> Published:
    """Append a delivery of an event for each endpoint that wants it by what the log says now, or none at all.

    Uses what was prepared before the log's lock was taken, as far as it still fits. An endpoint that has the
    event already keeps that, if its content is the same. Raises Refused.
    """
    commit.flush_endpoints()
    wanting = ViewSource(commit.connection).subscribers(event.tenant, event.type)
    ids = [f"{one.endpoint_id}/{event.event_id}" for one in wanting]
    commit.state.load_deliveries(ids)
    fresh = []
    for one, known in zip(wanting, map(commit.state.delivery, ids), strict=True):
        if known is None:
            fresh.append(one)
        else:
            check_repeat(commit, vault, known, encode(event.given))
    late = prepare_for(vault, event, (one for one in fresh if one not in prepared))
    accept(commit, vault, [prepared.get(one) or late[one] for one in fresh])
    return Published(event.event_id, tuple(one.endpoint_id.partition("/")[2] for one in wanting))
