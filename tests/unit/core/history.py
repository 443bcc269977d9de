"""A log without a database: operations in, entries out, the state kept between them."""

from __future__ import annotations

from typing import Any

from dispatcher.core.decide import decide
from dispatcher.core.entities import Delivery, Endpoint
from dispatcher.core.entries import Body, Entry, Kind
from dispatcher.core.evolve import evolve
from dispatcher.core.operations import AnyOperation, Enqueue, Record, Refusal, Register
from dispatcher.core.policy import PROMISED, RetryPolicy
from dispatcher.core.state import State
from dispatcher.core.status import status

ENDPOINT_FIELDS = [
    name for name in Endpoint.__struct_fields__ if name not in ("lanes", "lane_order", "dead_ids")
]
DELIVERY_FIELDS = [name for name in Delivery.__struct_fields__ if name != "lane"]


class History:
    """Times in the tests are small numbers: the rules do not know the log's unit."""

    def __init__(self, kind: Kind = "live") -> None:
        self.state = State(kind)

    def entries(self, operation: AnyOperation, ts: int = 0) -> list[Entry]:
        """Decide and take in an operation that must not be refused."""
        decided = decide(self.state, operation, ts)
        assert not isinstance(decided, Refusal), f"{operation} was refused: {decided.code}"
        for entry in decided:
            evolve(self.state, entry)
        return decided

    def bodies(self, operation: AnyOperation, ts: int = 0) -> list[Body]:
        return [entry.body for entry in self.entries(operation, ts)]

    def refusal(self, operation: AnyOperation, ts: int = 0) -> str:
        """The code with which an operation is refused."""
        before = snapshot(self.state)
        decided = decide(self.state, operation, ts)
        assert isinstance(decided, Refusal), f"{operation} was not refused"
        assert snapshot(self.state) == before, "a refusal changed something"
        return decided.code

    def attempt(self, delivery_id: str, http_status: int, ts: int = 0, **facts: Any) -> Any:
        """Record an attempt; the AttemptRecorded that comes of it."""
        return self.bodies(Record(delivery_id, http_status, ts, **facts), ts)[0]

    def exhaust(self, *delivery_ids: str, ts: int = 0) -> None:
        """Let deliveries die at once, in this order."""
        for delivery_id in delivery_ids:
            assert self.attempt(delivery_id, 404, ts).decision == "dead"

    def endpoint(self, endpoint_id: str = "shop") -> Endpoint:
        found = self.state.endpoint(endpoint_id)
        assert found is not None
        return found

    def delivery(self, delivery_id: str) -> Delivery:
        found = self.state.delivery(delivery_id)
        assert found is not None
        return found

    def status(self, delivery_id: str) -> tuple[object, ...]:
        """(state, attempts, next attempt at)."""
        return tuple(status(self.delivery(delivery_id)).values())

    def dead(self, endpoint_id: str = "shop") -> list[str]:
        return [delivery.id for delivery in self.state.dead(self.endpoint(endpoint_id))]


def shop(*delivery_ids: str, kind: Kind = "live", policy: RetryPolicy = PROMISED, **settings: Any) -> History:
    """A history with one endpoint, "shop", and deliveries enqueued for it, all at 0."""
    history = History(kind)
    history.entries(Register(endpoint_id="shop", url="https://shop.example", policy=policy, **settings))
    for delivery_id in delivery_ids:
        history.entries(Enqueue("shop", delivery_id, [200] if kind == "simulated" else None))
    return history


def snapshot(state: State) -> object:
    """All that a state says, to be compared."""
    return (
        state.kind,
        state.position,
        state.ts,
        {i: [getattr(e, name) for name in ENDPOINT_FIELDS] for i, e in state.endpoints.items()},
        {
            i: [d.lane.key, *(getattr(d, name) for name in DELIVERY_FIELDS)]
            for i, d in state.deliveries.items()
        },
    )
