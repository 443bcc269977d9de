"""The network, and receivers that are slow, broken or gone."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from dispatcher.delivery.transport import Answer, Request, no_answer
from tests.simulation.chances import Chances

if TYPE_CHECKING:
    from tests.simulation.process import Process

STATUSES = (200, 204, 500, 503, 429, 408, 404, 410, 301)
MOODS = ((200,), (200,), (200, 500), (503,), STATUSES, (404,), (500, 503, 429))
ENDPOINTS = {
    "https://default-a.example/": "default/a",
    "https://default-b.example/": "default/b",
    "https://other-a.example/": "other/a",
    "https://other-c.example/": "other/c",
    "mailto:other-m@example.com": "other/m",
}


class Reaction(NamedTuple):
    """What becomes of a request."""

    there: float
    """Seconds until it is at the receiver."""
    back: float
    """Seconds until the answer is back from there."""
    what: int | str
    """A status, or what went wrong."""
    retry_after: int | None = None
    twice: bool = False
    """Whether the network brings it twice."""


class Receiver:
    """Of one endpoint; it has its moods."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._until = 0.0
        self._statuses: tuple[int, ...] = ()

    def reaction(self, now: float) -> Reaction:
        chance = self._chance
        if now >= self._until:
            self._statuses = chance.choice(MOODS)
            self._until = now + chance.expovariate(1 / 120)
        there, back = chance.uniform(0.001, 0.3), chance.uniform(0.001, 0.5)
        what: int | str = chance.choice(self._statuses)
        trouble = chance.random()
        if trouble < 0.05:
            back = chance.uniform(5, 60)
        elif trouble < 0.08:
            what = "connection_reset"
        elif trouble < 0.11:
            what = "connection_refused"
        hint = chance.choice([None, 1, 90]) if what in (429, 503) else None
        return Reaction(there, back, what, hint, twice=0.11 <= trouble < 0.13)


class Network:
    """Between the processes and the receivers."""

    endpoints = ENDPOINTS
    """By their URLs."""

    def __init__(self, chances: Chances) -> None:
        self.receivers = {name: Receiver(chances.of(f"receiver/{name}")) for name in ENDPOINTS.values()}
        self.healed = False

    def reaction(self, delivery_id: str, now: float) -> Reaction:
        if self.healed:
            return Reaction(0.01, 0.01, 200)
        return self.receivers[delivery_id.rpartition("/")[0]].reaction(now)


class Sending:
    """A process's transport."""

    def __init__(self, process: Process) -> None:
        self._process = process

    async def send(self, request: Request) -> Answer:
        world, worker = self._process.world, self._process.life
        endpoint_id = world.network.endpoints[request.url]
        event_id = dict(request.headers)["webhook-id"]
        assert event_id.encode() in request.body
        delivery_id = f"{endpoint_id}/{event_id}"
        fence = world.sent(worker, delivery_id)
        there, back, what, hint, twice = world.network.reaction(delivery_id, world.loop.time())
        if what != "connection_refused":
            # Once it is on its way it arrives, whatever becomes of the sender.
            world.loop.call_later(there, world.arrived, delivery_id, fence)
            if twice:
                world.loop.call_later(there + back, world.arrived, delivery_id, fence, True)
        try:
            if there + back >= request.deadline:
                await asyncio.sleep(request.deadline)
                return no_answer("deadline")
            await asyncio.sleep(there + back)
            return no_answer(what) if isinstance(what, str) else Answer(status=what, retry_after=hint)
        finally:
            world.checker.answered(delivery_id, fence)

    async def close(self) -> None:
        """There is nothing to let go of."""
