"""What a delivery looks like from outside."""

from __future__ import annotations

from dispatcher.core.entities import Delivery, Endpoint
from dispatcher.core.entries import AttemptRecorded


def shown_state(delivery: Delivery) -> str:
    """pending, held, delivered, dead or cancelled; held is pending at a disabled endpoint."""
    if delivery.state == "pending" and delivery.lane.endpoint.disabled is not None:
        return "held"
    return delivery.state


def due_at(delivery: Delivery) -> int | None:
    """When it may be attempted, in the log's unit; None unless it is pending and not held."""
    endpoint: Endpoint = delivery.lane.endpoint
    if delivery.state != "pending" or endpoint.disabled is not None:
        return None
    return delivery.due_at if delivery.resumption == endpoint.resumptions else endpoint.resumed_at


def status(delivery: Delivery) -> dict[str, object]:
    """`{"state", "attempts", "next_attempt_at"}`; the time is in the log's unit."""
    return {
        "state": shown_state(delivery),
        "attempts": delivery.attempts,
        "next_attempt_at": due_at(delivery),
    }


def attempt_record(delivery_id: str, attempt: AttemptRecorded) -> str:
    """One attempt as a line: `evt-1 #1 503 retry at 30`, `evt-1 #2 200 delivered`, `evt-1 #1 404 dead`."""
    decided = attempt.decision if attempt.retry_at is None else f"retry at {attempt.retry_at}"
    return f"{delivery_id} #{attempt.attempt} {attempt.status} {decided}"
