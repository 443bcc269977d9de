"""A naive model of `run`, from its contract alone: lists, linear scans, nothing shared with the product.

It is slow on purpose. Whatever it says must be obvious from reading it beside the contract.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

ARITIES = {
    "register": (2,),
    "enqueue": (3,),
    "process": (0,),
    "status": (1,),
    "dead_letters": (0, 1),
    "disable": (1,),
    "enable": (2,),
}
WAITS = [30, 60, 120, 240, 300]
MAX_ATTEMPTS = 6
MAX_TS = 2**53
MAX_ID = 256
MAX_URL = 2048


class Refused(Exception):
    """The operation changes nothing; its code is the first argument."""


@dataclass(eq=False)
class Endpoint:
    id: str
    disabled: bool = False


@dataclass(eq=False)
class Event:
    id: str
    endpoint: Endpoint
    outcomes: list[int]
    due_at: int
    state: str = "pending"  # or "delivered", "dead"; "held" is how a pending one reads at a disabled endpoint
    attempts: int = 0


class Model:
    """What `run` answers, with its state kept between calls: a history may be split over several of them."""

    def __init__(self) -> None:
        self.endpoints: list[Endpoint] = []
        self.events: list[Event] = []  # in enqueue order, for ever
        self.deaths: list[Event] = []  # the dead ones, by their latest death
        self.last_ts: int | None = None  # of the log's last entry
        self.position = 0  # how many entries the log has
        self.enqueued = 0

    def run(self, operations: list[Any]) -> list[Any]:
        """One result per operation."""
        return [self._answer(operation) for operation in operations]

    def counts(self) -> dict[str, int]:
        """Conservation: `enqueued` counts accepted enqueues, the others the rows in each state."""
        counts = {"enqueued": self.enqueued, "pending": 0, "held": 0, "delivered": 0, "dead": 0}
        for event in self.events:
            counts[self._state(event)] += 1
        return counts

    def _answer(self, operation: Any) -> Any:
        try:
            name, ts, args = _checked(operation)
            if self.last_ts is not None and ts < self.last_ts:
                raise Refused("time went backwards")
            return getattr(self, "_" + name)(ts, *args)
        except Refused as refusal:
            return f"error: {refusal.args[0]}"

    def _append(self, ts: int) -> None:
        """One entry; the very first one comes after the entry that opens the log."""
        if self.position == 0:
            self.position = 1
        self.position += 1
        self.last_ts = ts

    # The seven operations

    def _register(self, ts: int, endpoint_id: str, _url: str) -> bool:
        for endpoint in self.endpoints:
            if endpoint.id == endpoint_id:
                raise Refused("duplicate endpoint")
        self.endpoints.append(Endpoint(endpoint_id))
        self._append(ts)
        return True

    def _enqueue(self, ts: int, endpoint_id: str, event_id: str, outcomes: Any) -> str:
        endpoint = self._endpoint(endpoint_id)
        for event in self.events:
            if event.id == event_id:
                raise Refused("duplicate event")
        self.events.append(Event(event_id, endpoint, _outcomes(outcomes), due_at=ts))
        self.enqueued += 1
        self._append(ts)
        return "queued"

    def _process(self, ts: int) -> list[str]:
        records: list[str] = []
        while True:
            due = [event for event in self._firsts() if event.due_at <= ts]
            if not due:
                return records
            first = min(due, key=lambda event: (event.due_at, self.events.index(event)))
            records.append(self._attempt(ts, first))

    def _status(self, _ts: int, event_id: str) -> dict[str, Any]:
        for event in self.events:
            if event.id == event_id:
                state = self._state(event)
                due_at = event.due_at if state == "pending" else None
                return {"state": state, "attempts": event.attempts, "next_attempt_at": due_at}
        raise Refused("unknown event")

    def _dead_letters(self, _ts: int, *endpoint_id: str) -> list[str]:
        if not endpoint_id:
            return [event.id for event in self.deaths]
        endpoint = self._endpoint(endpoint_id[0])
        return [event.id for event in self.deaths if event.endpoint is endpoint]

    def _disable(self, ts: int, endpoint_id: str) -> bool:
        endpoint = self._endpoint(endpoint_id)
        if endpoint.disabled:
            raise Refused("already disabled")
        endpoint.disabled = True
        self._append(ts)
        return True

    def _enable(self, ts: int, endpoint_id: str, replay_dead: bool) -> bool:
        endpoint = self._endpoint(endpoint_id)
        if not endpoint.disabled:
            raise Refused("not disabled")
        endpoint.disabled = False
        for event in self.events:
            if event.endpoint is endpoint and event.state == "dead" and replay_dead:
                event.state = "pending"
                event.attempts = 0
                self.deaths.remove(event)
                self._append(ts)
            if event.endpoint is endpoint and event.state == "pending":
                event.due_at = ts
        self._append(ts)
        return True

    # What they share

    def _endpoint(self, endpoint_id: str) -> Endpoint:
        for endpoint in self.endpoints:
            if endpoint.id == endpoint_id:
                return endpoint
        raise Refused("unknown endpoint")

    def _firsts(self) -> list[Event]:
        """The earliest-enqueued pending event of every enabled endpoint."""
        firsts: list[Event] = []
        for endpoint in self.endpoints:
            own = [event for event in self.events if event.endpoint is endpoint]
            pending = [event for event in own if event.state == "pending"]
            if pending and not endpoint.disabled:
                firsts.append(pending[0])
        return firsts

    def _attempt(self, ts: int, event: Event) -> str:
        script = event.outcomes + [event.outcomes[-1]] * MAX_ATTEMPTS
        status = script[event.attempts]
        event.attempts += 1
        self._append(ts)
        if 200 <= status <= 299:
            event.state = "delivered"
            decision = "delivered"
        elif (status in (0, 408, 429) or 500 <= status <= 599) and event.attempts < MAX_ATTEMPTS:
            event.due_at = ts + WAITS[event.attempts - 1]
            decision = f"retry at {event.due_at}"
        else:
            event.state = "dead"
            self.deaths.append(event)
            decision = "dead"
        return f"{event.id} #{event.attempts} {status} {decision}"

    @staticmethod
    def _state(event: Event) -> str:
        return "held" if event.state == "pending" and event.endpoint.disabled else event.state


# Arguments. A value counts as what its real type says, with its base type's content: an override in a
# subclass (or a `__class__` that lies) changes nothing, so no value can make a check mean something else.


def _checked(operation: Any) -> tuple[str, int, list[Any]]:
    """Name, ts and the arguments after it, all of them plain values."""
    parts = _sequence(operation)
    if not parts:
        raise Refused("invalid arguments")
    name = _string(parts[0])
    if name is None or name not in ARITIES:
        raise Refused("unknown operation")
    if len(parts) - 2 not in ARITIES[name]:
        raise Refused("invalid arguments")
    ts = _integer(parts[1])
    if ts is None or abs(ts) > MAX_TS:
        raise Refused("invalid arguments")
    if name == "register":
        return name, ts, [_text(parts[2], MAX_ID), _text(parts[3], MAX_URL)]
    if name == "enqueue":
        return name, ts, [_text(parts[2], MAX_ID), _text(parts[3], MAX_ID), parts[4]]
    if name == "enable":
        if parts[3] is not True and parts[3] is not False:
            raise Refused("invalid arguments")
        return name, ts, [_text(parts[2], MAX_ID), parts[3]]
    return name, ts, [_text(part, MAX_ID) for part in parts[2:]]


def _text(value: Any, longest: int) -> str:
    text = _string(value)
    if text is None or text == "" or len(text) > longest:
        raise Refused("invalid arguments")
    if any(character == "\0" or "\ud800" <= character <= "\udfff" for character in text):
        raise Refused("invalid arguments")
    return text


def _outcomes(value: Any) -> list[int]:
    items = list.copy(value) if issubclass(type(value), list) else []
    statuses = [_integer(item) for item in items]
    outcomes = [status for status in statuses if status is not None and (status == 0 or 100 <= status <= 599)]
    if not statuses or len(outcomes) < len(statuses):
        raise Refused("invalid outcomes")
    return outcomes


def _sequence(value: Any) -> list[Any] | None:
    if issubclass(type(value), list):
        return list.copy(value)
    if issubclass(type(value), tuple):
        return [*tuple.__getitem__(value, slice(None))]
    return None


def _string(value: Any) -> str | None:
    return str.__str__(value) if issubclass(type(value), str) else None


def _integer(value: Any) -> int | None:
    return int.__index__(value) if issubclass(type(value), int) and type(value) is not bool else None
