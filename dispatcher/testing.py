"""For tests of what uses the dispatcher: receivers without a network, clocks without waiting."""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Iterable
from typing import Protocol

from msgspec import Struct

from dispatcher.delivery.transport import Answer, Request, no_answer


class Clock(Protocol):
    """Anything that lets time pass."""

    async def sleep(self, seconds: float) -> None: ...


class ManualClock:
    """A clock that moves when told to; seconds."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = 0

    async def sleep(self, seconds: float) -> None:
        """Returns once the clock has been advanced that far."""
        if seconds <= 0:
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._count += 1
        heapq.heappush(self._sleepers, (self.now + seconds, self._count, woken))
        await woken

    def advance(self, seconds: float) -> None:
        """Moves on; whoever has slept long enough is woken, in order."""
        self.now += seconds
        while self._sleepers and self._sleepers[0][0] <= self.now:
            woken = heapq.heappop(self._sleepers)[2]
            if not woken.done():
                woken.set_result(None)


class Delayed(Struct, frozen=True):
    """An answer that comes late, by the transport's clock; past the request's deadline it never does."""

    seconds: float
    answer: Answer


class Hanging(Struct, frozen=True):
    """A receiver that never answers, not even at the deadline: what a killed worker leaves behind."""


Step = Answer | Delayed | Hanging | int | str
"""What a receiver does: an answer, one that is late or never comes, a status, or an error's code."""


class ScriptedTransport:
    """Answers from scripts, and keeps what was sent in `requests`.

    A script belongs to an event (its `webhook-id`) or, failing that, to a URL; its last step repeats.
    What has no script is answered with `default`.
    """

    def __init__(self, default: Step = 200, clock: Clock | None = None) -> None:
        self.requests: list[Request] = []
        self.closed = False
        self._default = default
        self._clock: Clock = ManualClock() if clock is None else clock
        self._scripts: dict[str, deque[Step]] = {}
        self._arrivals = asyncio.Condition()

    def script(self, key: str, steps: Iterable[Step]) -> None:
        """What the receiver of an event id or a URL does at each request, from now on. At least one step."""
        script = deque(steps)
        if not script:
            raise ValueError("a script has at least one step")
        self._scripts[key] = script

    async def send(self, request: Request) -> Answer:
        if self.closed:
            return no_answer("aborted")
        self.requests.append(request)
        step = self._next_step(request)
        async with self._arrivals:
            self._arrivals.notify_all()
        match step:
            case Hanging():
                await asyncio.Event().wait()
                raise AssertionError("unreachable")
            case Delayed(seconds=seconds, answer=answer):
                await self._clock.sleep(min(seconds, request.deadline))
                return answer if seconds <= request.deadline else no_answer("deadline")
            case int():
                return Answer(status=step) if step else no_answer("deadline")
            case str():
                return no_answer(step)
            case _:
                return step

    async def close(self) -> None:
        self.closed = True

    async def arrived(self, count: int) -> None:
        """Returns once that many requests have arrived in total."""
        async with self._arrivals:
            await self._arrivals.wait_for(lambda: len(self.requests) >= count)

    def sent_to(self, url: str) -> list[Request]:
        """The requests to a URL, in the order of their arrival."""
        return [request for request in self.requests if request.url == url]

    def _next_step(self, request: Request) -> Step:
        event_id = next((value for name, value in request.headers if name.lower() == "webhook-id"), "")
        script = self._scripts.get(event_id) or self._scripts.get(request.url)
        if script is None:
            return self._default
        return script.popleft() if len(script) > 1 else script[0]
