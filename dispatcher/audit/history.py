"""What happened, entry by entry."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, assert_never

import msgspec

from dispatcher.audit.names import stored, unknown_event
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
from dispatcher.log.read import LogRow, entry_of, rows_of


def history(state: State, delivery_id: str) -> list[LogRow]:
    """Every entry of one delivery, in order. Raises NotFound when there is none."""
    found = rows_of(stored(state).connection, delivery_id)
    if not found:
        raise unknown_event(state, delivery_id)
    return found


def as_json(row: LogRow) -> dict[str, Any]:
    """A row, its data as the value it stands for, its hash in hex. LogCorrupt when it can't be read."""
    entry_of(row)
    return {**row._asdict(), "data": json.loads(row.data), "hash": row.hash.hex()}


def sentence(row: LogRow) -> str:
    """What an entry says, in plain words; times are in the log's unit. LogCorrupt when it can't be read."""
    return describe(entry_of(row))


def describe(entry: Entry, when: Callable[[int], str] = str) -> str:
    """What an entry says; `when` puts a time in words."""
    body = entry.body
    match body:
        case AttemptRecorded():
            return _attempt(body, when)
        case Enqueued():
            of_type = f", of type {body.event_type}" if body.event_type is not None else ""
            lane = f" in lane {body.lane}" if body.lane else ""
            return f"enqueued for {entry.endpoint_id}{lane}{of_type}"
        case Revived():
            return "revived, with no attempts, at its original place"
        case AttemptReleased():
            return "attempt cut off by an orderly shutdown; it does not count"
        case Cancelled():
            return "cancelled"
        case PayloadErased():
            return "payload erased"
        case LogOpened():
            return f"log opened: {body.kind}, times in {body.unit}"
        case EndpointRegistered():
            return f"endpoint {entry.endpoint_id} registered for {body.url}"
        case EndpointUpdated():
            return f"endpoint {entry.endpoint_id} changed: {', '.join(_changes(body))}"
        case EndpointDisabled():
            return f"endpoint {entry.endpoint_id} disabled: {body.reason}"
        case EndpointEnabled():
            revived = ", its dead deliveries revived" if body.replay_dead else ""
            return f"endpoint {entry.endpoint_id} enabled{revived}"
        case _:
            raise AssertionError(f"no words for {type(body).__name__}")


def _attempt(attempt: AttemptRecorded, when: Callable[[int], str]) -> str:
    answer = f"{attempt.status}" if attempt.status else "no answer"
    if attempt.error:
        answer += f" ({attempt.error})"
    match attempt.decision:
        case "delivered":
            return f"attempt {attempt.attempt}: {answer}, delivered"
        case "retry":
            retry_at = "no time" if attempt.retry_at is None else when(attempt.retry_at)
            return f"attempt {attempt.attempt}: {answer}, retry at {retry_at}"
        case "dead":
            why = "no attempt left" if attempt.outcome == "retryable" else "permanent"
            return f"attempt {attempt.attempt}: {answer}, dead ({why})"
        case _:
            assert_never(attempt.decision)


def _changes(body: Body) -> list[str]:
    return [name for name, value in msgspec.structs.asdict(body).items() if value is not msgspec.UNSET]
