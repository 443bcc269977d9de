"""A state that is told entries as they stand in a log, whoever decided them."""

from __future__ import annotations

from dispatcher.core.entities import Endpoint
from dispatcher.core.entries import AttemptRecorded, Body, EndpointRegistered, Enqueued, Entry, LogOpened
from dispatcher.core.evolve import Changed, evolve
from dispatcher.core.policy import PROMISED
from dispatcher.core.state import State

REGISTERED = EndpointRegistered(url="u", policy=PROMISED, order="strict", concurrency=8, erase="never")
RETRY = AttemptRecorded(
    attempt=1, status=503, outcome="retryable", decision="retry", retry_at=77, error="slow", started_at=5
)
SENT = AttemptRecorded(attempt=2, status=204, outcome="success", decision="delivered", started_at=5)
DEAD = AttemptRecorded(attempt=3, status=404, outcome="permanent", decision="dead", started_at=5)


class Fold:
    """A state told entries about one endpoint and its deliveries, one second after the other."""

    def __init__(self, *deliveries: str) -> None:
        self.state = State("live")
        self.tell(LogOpened(kind="live", unit="ms"), endpoint=None)
        self.tell(REGISTERED)
        for delivery in deliveries:
            self.tell(Enqueued(), delivery)

    def tell(
        self, body: Body, delivery: str | None = None, ts: int | None = None, endpoint: str | None = "shop"
    ) -> Changed:
        return evolve(self.state, Entry(self.state.position if ts is None else ts, endpoint, delivery, body))

    @property
    def shop(self) -> Endpoint:
        return self.state.endpoints["shop"]

    def counts(self) -> tuple[int, ...]:
        """(pending, delivered, dead, cancelled)."""
        shop = self.shop
        return shop.pending, shop.delivered, shop.dead, shop.cancelled
