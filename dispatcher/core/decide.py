"""The rules: what comes of an operation, given the state. Nothing else decides anything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dispatcher.core.entities import Delivery
from dispatcher.core.entries import (
    AttemptRecorded,
    AttemptReleased,
    Body,
    Cancelled,
    Decision,
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
from dispatcher.core.operations import (
    AnyOperation,
    Cancel,
    Disable,
    Enable,
    Enqueue,
    Erase,
    Operation,
    Record,
    Refusal,
    Register,
    Release,
    Revive,
    Update,
)
from dispatcher.core.policy import HINTED_STATUSES
from dispatcher.core.script import parse_script
from dispatcher.core.state import State


def decide(state: State, operation: AnyOperation, ts: int) -> list[Entry] | Refusal:
    """The entries that an operation at ts (the log's unit) comes to, or why it is refused.

    A refused operation changes nothing. The first entry of a log opens it.
    """
    decided = _DECIDE[type(operation)](state, operation, ts)
    if state.position == 0 and isinstance(decided, list):
        opened = LogOpened(kind=state.kind, unit="s" if state.kind == "simulated" else "ms")
        decided.insert(0, Entry(ts, None, None, opened))
    return decided


def _register(state: State, operation: Register, ts: int) -> list[Entry] | Refusal:
    if state.endpoint(operation.endpoint_id) is not None:
        return Refusal("duplicate_endpoint")
    body = EndpointRegistered(
        url=operation.url,
        policy=operation.policy,
        url_digest=operation.url_digest,
        order=operation.order,
        concurrency=operation.concurrency,
        erase=operation.erase,
        disable_when_gone=operation.disable_when_gone,
        actor=operation.actor,
        types=operation.types,
        body_format=operation.body_format,
        keep_payloads=operation.keep_payloads,
    )
    return [Entry(ts, operation.endpoint_id, None, body)]


def _update(state: State, operation: Update, ts: int) -> list[Entry] | Refusal:
    if state.endpoint(operation.endpoint_id) is None:
        return Refusal("unknown_endpoint")
    body = EndpointUpdated(
        url=operation.url,
        policy=operation.policy,
        url_digest=operation.url_digest,
        order=operation.order,
        concurrency=operation.concurrency,
        erase=operation.erase,
        disable_when_gone=operation.disable_when_gone,
        actor=operation.actor,
        types=operation.types,
        body_format=operation.body_format,
        keep_payloads=operation.keep_payloads,
    )
    return [Entry(ts, operation.endpoint_id, None, body)]


def _enqueue(state: State, operation: Enqueue, ts: int) -> list[Entry] | Refusal:
    endpoint = state.endpoint(operation.endpoint_id)
    if endpoint is None:
        return Refusal("unknown_endpoint")
    if state.delivery(operation.delivery_id) is not None:
        return Refusal("duplicate_event")
    outcomes = None
    if state.kind == "simulated":
        outcomes = parse_script(operation.outcomes)
        if outcomes is None:
            return Refusal("invalid_outcomes")
    lane = ""
    if endpoint.order == "none":
        if operation.order_key is not None:
            return Refusal("order_key_refused")
        lane = f"own:{operation.delivery_id}"
    elif operation.order_key is not None:
        lane = f"key:{operation.order_key}"
    body = Enqueued(
        lane=lane,
        outcomes=outcomes,
        seed=operation.seed,
        digest=operation.digest,
        actor=operation.actor,
        event_type=operation.event_type,
    )
    return [Entry(ts, operation.endpoint_id, operation.delivery_id, body)]


def _record(state: State, operation: Record, ts: int) -> list[Entry] | Refusal:
    delivery = state.delivery(operation.delivery_id)
    if delivery is None:
        return Refusal("unknown_event")
    if delivery.state != "pending":
        return Refusal("not_pending")
    endpoint = delivery.lane.endpoint
    policy = endpoint.policy
    attempt = delivery.attempts + 1
    outcome = operation.outcome or policy.classify(operation.status)
    retry_at = None
    decision: Decision
    if outcome == "success":
        decision = "delivered"
    elif outcome == "retryable" and attempt < policy.max_attempts:
        decision = "retry"
        retry_at = ts + policy.wait_after(attempt, delivery.seed)
        if operation.retry_after is not None and operation.status in HINTED_STATUSES:
            retry_at = max(retry_at, ts + min(operation.retry_after, policy.retry_after_cap))
    else:
        decision = "dead"
    recorded = AttemptRecorded(
        attempt=attempt,
        status=operation.status,
        outcome=outcome,
        decision=decision,
        retry_at=retry_at,
        error=operation.error,
        retry_after=operation.retry_after,
        worker=operation.worker,
        started_at=operation.started_at,
        duration=operation.duration,
        judged=operation.outcome is not None,
    )
    entries = [Entry(ts, endpoint.id, delivery.id, recorded)]
    if decision == "retry":
        return entries
    if endpoint.erase == "on_final" or (endpoint.erase == "on_delivery" and decision == "delivered"):
        entries.append(Entry(ts, endpoint.id, delivery.id, PayloadErased()))
    # A status that came with its class is none of HTTP.
    gone = operation.status == 410 and operation.outcome is None
    if gone and endpoint.disable_when_gone and endpoint.disabled is None:
        entries.append(Entry(ts, endpoint.id, None, EndpointDisabled(reason="gone")))
    return entries


def _release(state: State, operation: Release, ts: int) -> list[Entry] | Refusal:
    delivery = state.delivery(operation.delivery_id)
    if delivery is None:
        return Refusal("unknown_event")
    if delivery.state != "pending":
        return Refusal("not_pending")
    return [_about(delivery, ts, AttemptReleased(worker=operation.worker, started_at=operation.started_at))]


def _disable(state: State, operation: Disable, ts: int) -> list[Entry] | Refusal:
    endpoint = state.endpoint(operation.endpoint_id)
    if endpoint is None:
        return Refusal("unknown_endpoint")
    if endpoint.disabled is not None:
        return Refusal("already_disabled")
    return [Entry(ts, endpoint.id, None, EndpointDisabled(reason=operation.reason, actor=operation.actor))]


def _enable(state: State, operation: Enable, ts: int) -> list[Entry] | Refusal:
    endpoint = state.endpoint(operation.endpoint_id)
    if endpoint is None:
        return Refusal("unknown_endpoint")
    if endpoint.disabled is None:
        return Refusal("not_disabled")
    entries = []
    if operation.replay_dead:
        entries = _revivals(state.revivable(endpoint), operation.actor, ts)
    enabled = EndpointEnabled(replay_dead=operation.replay_dead, actor=operation.actor)
    entries.append(Entry(ts, endpoint.id, None, enabled))
    return entries


def _revive(state: State, operation: Revive, ts: int) -> list[Entry] | Refusal:
    endpoint = state.endpoint(operation.endpoint_id)
    if endpoint is None:
        return Refusal("unknown_endpoint")
    if operation.limit is not None and operation.limit < 1:
        return Refusal("invalid_limit")
    if operation.delivery_ids is None:
        chosen = state.revivable(
            endpoint,
            after=operation.after,
            limit=operation.limit,
            died_from=operation.died_from,
            died_before=operation.died_before,
        )
    else:
        chosen = []
        for delivery_id in dict.fromkeys(operation.delivery_ids):
            delivery = state.delivery(delivery_id)
            if delivery is None or delivery.lane.endpoint is not endpoint:
                return Refusal("unknown_event")
            if delivery.state != "dead":
                return Refusal("not_dead")
            if delivery.erased:
                return Refusal("payload_erased")
            chosen.append(delivery)
        chosen.sort(key=_order)
    return _revivals(chosen[: operation.limit], operation.actor, ts)


def _revivals(deliveries: list[Delivery], actor: str | None, ts: int) -> list[Entry]:
    revived = Revived(actor=actor)
    return [_about(delivery, ts, revived) for delivery in deliveries]


def _cancel(state: State, operation: Cancel, ts: int) -> list[Entry] | Refusal:
    delivery = state.delivery(operation.delivery_id)
    if delivery is None:
        return Refusal("unknown_event")
    if delivery.state != "pending":
        return Refusal("not_pending")
    if operation.in_flight:
        return Refusal("in_flight")
    return [_about(delivery, ts, Cancelled(actor=operation.actor))]


def _erase(state: State, operation: Erase, ts: int) -> list[Entry] | Refusal:
    delivery = state.delivery(operation.delivery_id)
    if delivery is None:
        return Refusal("unknown_event")
    if operation.in_flight:
        return Refusal("in_flight")
    if delivery.erased:
        return []
    entries = [_about(delivery, ts, PayloadErased(actor=operation.actor))]
    if delivery.state == "pending":
        entries.insert(0, _about(delivery, ts, Cancelled(actor=operation.actor)))
    return entries


def _about(delivery: Delivery, ts: int, body: Body) -> Entry:
    return Entry(ts, delivery.lane.endpoint.id, delivery.id, body)


def _order(delivery: Delivery) -> int:
    return delivery.order


_DECIDE: dict[type[Operation], Callable[[State, Any, int], list[Entry] | Refusal]] = {
    Register: _register,
    Update: _update,
    Enqueue: _enqueue,
    Record: _record,
    Release: _release,
    Disable: _disable,
    Enable: _enable,
    Revive: _revive,
    Cancel: _cancel,
    Erase: _erase,
}
