"""From entries back to the operations that they came of."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from msgspec import structs

from dispatcher.core.entries import (
    AttemptRecorded,
    AttemptReleased,
    Cancelled,
    EndpointDisabled,
    EndpointEnabled,
    EndpointRegistered,
    EndpointUpdated,
    Enqueued,
    Entry,
    Kind,
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
    Record,
    Register,
    Release,
    Revive,
    Update,
)


class Recorded:
    """Entries that are still to be told, as far ahead as one operation needs."""

    def __init__(self, entries: Iterator[Entry]) -> None:
        self._entries = entries
        self._ahead: deque[Entry] = deque()

    def peek(self, n: int) -> Entry | None:
        """The entry n places ahead (from 0), or None past the end."""
        while len(self._ahead) <= n:
            entry = next(self._entries, None)
            if entry is None:
                return None
            self._ahead.append(entry)
        return self._ahead[n]

    def take(self) -> Entry | None:
        entry = self.peek(0)
        if entry is not None:
            self._ahead.popleft()
        return entry


def next_operation(recorded: Recorded, kind: Kind) -> AnyOperation | None:
    """The operation that the entries ahead begin with, with the facts that they recorded; None at the end."""
    first = recorded.peek(0)
    opening = first is not None and isinstance(first.body, LogOpened)
    entry = recorded.peek(1) if opening else first
    if entry is None:
        return None
    endpoint_id, delivery_id = entry.endpoint_id or "", entry.delivery_id or ""
    match entry.body:
        case AttemptRecorded() as body:
            return Record(
                delivery_id,
                body.status,
                body.started_at,
                body.duration,
                body.outcome if body.judged else None,
                body.error,
                body.retry_after,
                body.worker,
            )
        case Enqueued() as body:
            key = body.lane.removeprefix("key:") if body.lane.startswith("key:") else None
            outcomes = None if body.outcomes is None else list(body.outcomes)
            facts = body.seed, body.digest, body.actor, body.event_type
            return Enqueue(endpoint_id, delivery_id, outcomes, key, *facts)
        case EndpointRegistered() as body:
            return Register(endpoint_id=endpoint_id, **structs.asdict(body))
        case EndpointUpdated() as body:
            return Update(endpoint_id=endpoint_id, **structs.asdict(body))
        case AttemptReleased() as body:
            return Release(delivery_id, body.started_at, body.worker)
        case EndpointDisabled() as body:
            return Disable(endpoint_id, body.reason, body.actor)
        case EndpointEnabled() as body:
            return Enable(endpoint_id, body.replay_dead, body.actor)
        case Revived() as body:
            if kind == "simulated":
                return Enable(endpoint_id, True, body.actor)
            return Revive(endpoint_id, (delivery_id,), actor=body.actor)
        case Cancelled() as body:
            return Cancel(delivery_id, actor=body.actor)
        case PayloadErased() as body:
            return Erase(delivery_id, actor=body.actor)
        case _:
            # LogOpened where none can stand: whatever follows it, the rules will not open a log twice.
            return Disable(endpoint_id)
