"""The customers of the demo: four endpoints, each with a trouble of its own, and what has to come of it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from types import MappingProxyType
from typing import NamedTuple

from dispatcher.cli.receiver import Arrival, Receiver
from dispatcher.core.policy import RetryPolicy

EVENTS_EACH = 5
AWAY_SECONDS = 4.0
POLICY = RetryPolicy.exponential(attempts=8, base=1, cap=2)
"""In seconds, so that nobody waits for a demo."""
POISON, RETRIED = "picky-3", "flaky-2"


class Kind(NamedTuple):
    """What one customer is like."""

    endpoint_id: str
    habit: str
    answers: Mapping[str, tuple[int, ...]] = MappingProxyType({})
    """Of the events that it does not take at once."""
    away: float = 0.0
    """For how many seconds nothing listens."""

    @property
    def events(self) -> list[str]:
        return [f"{self.endpoint_id}-{n}" for n in range(1, EVENTS_EACH + 1)]

    @property
    def dead(self) -> list[str]:
        """Those that it will never take."""
        return [event for event in self.events if self.answers.get(event, (200,))[-1] != 200]


KINDS = (
    Kind("healthy", "takes everything"),
    Kind("flaky", "fails twice on some", {RETRIED: (503, 503, 200), "flaky-4": (503, 503, 200)}),
    Kind("picky", f"never takes {POISON}", {POISON: (400,)}),
    Kind("away", f"is down for {AWAY_SECONDS:g} seconds", away=AWAY_SECONDS),
)


class Customer:
    """One of them, with its receiver."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.receiver = Receiver(for_events=kind.answers)
        self._open = False
        self._arrived: list[Arrival] = []

    def open_after(self, seconds: float) -> None:
        if not self._open and seconds >= self.kind.away:
            self.receiver.listen()
            self._open = True

    @property
    def arrived(self) -> list[Arrival]:
        while not self.receiver.arrivals.empty():
            self._arrived.append(self.receiver.arrivals.get())
        return self._arrived

    @property
    def order(self) -> list[tuple[str, int]]:
        """(event, how often) as they came: an event that came between two others' attempts shows twice."""
        return [(event, len([*times])) for event, times in groupby(one.event_id for one in self.arrived)]

    def troubles(self, dead: list[str], delivered: int) -> list[str]:
        """What did not come as it has to."""
        name, found = self.kind.endpoint_id, []
        if [event for event, _ in self.order] != self.kind.events:
            found.append(f"{name}: its events did not arrive in order")
        if {one.signature for one in self.arrived} != {"verified"}:
            found.append(f"{name}: a request came without a valid signature")
        if dead != self.kind.dead or delivered != EVENTS_EACH - len(self.kind.dead):
            found.append(f"{name}: {delivered} events were delivered, and {len(dead)} are dead")
        return found
