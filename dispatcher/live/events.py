"""Events as they are accepted: checked and encrypted before the log's lock is taken, appended under it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec import UNSET

from dispatcher.core.entities import Delivery
from dispatcher.core.operations import Enqueue
from dispatcher.delivery.accepting import body_of, check_event_type, check_fields, check_name, new_event_id
from dispatcher.delivery.headers import check_headers
from dispatcher.delivery.settings import Payload, encode
from dispatcher.errors import Refused
from dispatcher.log.commit import Commit
from dispatcher.log.vault import SealedPayload, Vault


class Prepared(NamedTuple):
    """An event, ready to be appended."""

    event_id: str
    operation: Enqueue
    content: bytes
    """By which a repeat is told: what was given, whatever it is wrapped in."""
    sealed: SealedPayload

    def __repr__(self) -> str:
        return f"Prepared({self.event_id})"


def prepare(
    vault: Vault,
    endpoint_id: str,
    payload: Any,
    *,
    tenant: str = "default",
    event_id: str | None = None,
    content_type: str | None = None,
    headers: Sequence[tuple[str, str]] = (),
    order_key: str | None = None,
    type: str | None = None,
    actor: str | None = None,
) -> Prepared:
    """Raises Refused for what can never be accepted."""
    endpoint = check_name(tenant, endpoint_id)
    if event_id is None:
        event_id = new_event_id()
        delivery = f"{endpoint}/{event_id}"
    else:
        delivery = check_name(tenant, endpoint_id, event_id)
    given = given_payload(payload, content_type, headers, type)
    content = encode(given)
    sealed = vault.seal_payload(delivery, content)
    key = None if order_key is None else vault.digest("order key", order_key)
    operation = Enqueue(endpoint, delivery, None, key, new_seed(), sealed.digest, actor, type)
    if actor is not None:  # whatever else is in it was checked or made here
        check_fields(operation)
    return Prepared(event_id, operation, content, sealed)


def given_payload(
    payload: Any, content_type: str | None, headers: Sequence[tuple[str, str]], type: str | None
) -> Payload:
    """What makes up an event's content. Raises Refused for what can never be sent."""
    if content_type is not None:
        headers = (("Content-Type", content_type), *headers)
    return Payload(
        body=body_of(payload),
        headers=check_headers(headers) if headers else (),
        type=UNSET if type is None else check_event_type(type),
    )


def new_seed() -> int:
    """What the jitter of a delivery's waits is derived from."""
    return int.from_bytes(os.urandom(8), "big") >> 2


def accept(commit: Commit, vault: Vault, events: Sequence[Prepared]) -> list[str]:
    """Append events, all or none; returns their ids. What is there already with the same content stays."""
    state = commit.state
    state.load_endpoints({event.operation.endpoint_id for event in events})
    state.load_deliveries([event.operation.delivery_id for event in events])
    fresh: dict[str, Prepared] = {}
    for event in events:
        operation = event.operation
        if state.endpoint(operation.endpoint_id) is None:
            raise Refused("unknown_endpoint")
        known = state.delivery(operation.delivery_id)
        if known is not None:
            check_repeat(commit, vault, known, event.content)
        elif fresh.setdefault(operation.delivery_id, event).content != event.content:
            raise Refused("duplicate_event")
    payloads = []
    for event in fresh.values():
        commit.apply(event.operation)
        payloads.append((state.position, event.sealed))
    vault.write_payloads(commit.insert, payloads)
    return [event.event_id for event in events]


def check_repeat(commit: Commit, vault: Vault, known: Delivery, content: bytes) -> None:
    """Raises Refused, `duplicate_event`, unless a delivery has this very content, and still has it."""
    commit.flush(known.order)
    if known.erased or known.digest != vault.digest_as_in(commit.connection, known.order, content):
        raise Refused("duplicate_event")
