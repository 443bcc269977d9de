"""The network, and receivers that are slow, broken or gone."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from dispatcher.delivery.transport import Answer, Request, no_answer

if TYPE_CHECKING:
    from tests.simulation.process import Process

STATUSES = (200, 204, 500, 503, 429, 408, 404, 410, 301)


class Arrival(NamedTuple):
    """A request at a receiver."""

    at: float
    endpoint: str
    event_id: str


class Receivers:
    """One for each endpoint; each has its moods."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._moods: dict[str, tuple[float, tuple[int, ...]]] = {}
        self.arrivals: list[Arrival] = []
        self.healed = False

    def answer_of(self, endpoint: str, now: float) -> tuple[float, float, int | str, int | None]:
        """Seconds until a request is there, then until the answer is back; a status, or what went wrong."""
        chance = self._chance
        if self.healed:
            return 0.01, 0.01, 200, None
        until, statuses = self._moods.get(endpoint, (0.0, ()))
        if now >= until:
            kinds = [(200,), (200,), (200, 500), (503,), STATUSES, (404,), (500, 503, 429)]
            statuses = chance.choice(kinds)
            self._moods[endpoint] = (now + chance.expovariate(1 / 120), statuses)
        there, back = chance.uniform(0.001, 0.3), chance.uniform(0.001, 0.5)
        what: int | str = chance.choice(statuses)
        trouble = chance.random()
        if trouble < 0.05:
            back = chance.uniform(5, 60)
        elif trouble < 0.08:
            what = "connection_reset"
        elif trouble < 0.11:
            what = "connection_refused"
        hint = chance.choice([None, 1, 90]) if what in (429, 503) else None
        return there, back, what, hint


class Sending:
    """A process's transport."""

    def __init__(self, process: Process) -> None:
        self._process = process

    async def send(self, request: Request) -> Answer:
        world = self._process.world
        headers = dict(request.headers)
        arrival = Arrival(world.loop.time(), request.url, headers["webhook-id"])
        there, back, what, hint = world.receivers.answer_of(request.url, world.loop.time())
        if what != "connection_refused":
            # Once it is on its way it arrives, whatever becomes of the sender.
            world.loop.call_later(there, world.arrived, arrival)
        if there + back >= request.deadline:
            await asyncio.sleep(request.deadline)
            what = "deadline"
        else:
            await asyncio.sleep(there + back)
        while (ahead := self._process.stalled_until - world.loop.time()) > 0:
            await asyncio.sleep(ahead)
        return no_answer(what) if isinstance(what, str) else Answer(status=what, retry_after=hint)

    async def close(self) -> None:
        """There is nothing to let go of."""
