"""Time that is made up: whoever sleeps is woken at once, and the clock says that it took so long."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine, Generator
from contextvars import Context, ContextVar
from types import coroutine
from typing import Any, Protocol

from dispatcher.log.clock import ProcessClock

BEGINNING = 1_800_000_000 * 10**9
"""Of the world, in nanoseconds since 1970."""


class Deadlock(Exception):
    """Everybody waits, and nothing is going to happen any more."""


class Runner(Protocol):
    """Whose tasks may be interrupted."""

    def interruption(self) -> float:
        """Asked before each step of a task: seconds that it has to wait. Raises what ends it."""
        ...

    def abandon(self, task: Coroutine[Any, Any, Any]) -> None:
        """A task that goes no step further: it ended, or was ended."""
        ...


RUNNER: ContextVar[Runner | None] = ContextVar("RUNNER", default=None)


class _Skipping(selectors.SelectSelector):
    """Instead of waiting for something to happen, lets the time pass."""

    loop: VirtualLoop

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise Deadlock
        self.loop.seconds += max(0.0, timeout)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time jumps to the next thing that is to happen."""

    def __init__(self) -> None:
        self.seconds = 0.0
        selector = _Skipping()
        selector.loop = self
        super().__init__(selector)
        self.set_task_factory(_new_task)

    def time(self) -> float:
        return self.seconds

    def nanoseconds(self) -> int:
        return BEGINNING + round(self.seconds * 1e9)


def _new_task(
    loop: asyncio.AbstractEventLoop, work: Any, *, context: Context | None = None
) -> asyncio.Task[Any]:
    runner = RUNNER.get() if context is None else context.get(RUNNER)
    if runner is not None:
        work = _interruptible(runner, work)
    return asyncio.Task(work, loop=loop, context=context)


async def _interruptible(runner: Runner, work: Coroutine[Any, Any, Any]) -> Any:
    return await _steps(runner, work)


@coroutine
def _steps(runner: Runner, work: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """A task that may be interrupted wherever it awaits."""
    error: BaseException | None = None
    try:
        while True:
            while (wait := runner.interruption()) > 0:
                try:
                    yield from asyncio.sleep(wait).__await__()
                except asyncio.CancelledError as cancelled:
                    error = cancelled
            try:
                awaited = work.send(None) if error is None else work.throw(error)
            except StopIteration as stop:
                return stop.value
            error = None
            try:
                yield awaited
            except GeneratorExit:
                raise
            except BaseException as thrown:
                error = thrown
    finally:
        runner.abandon(work)


class VirtualClock(ProcessClock):
    """A process's clock, which may be set wrong."""

    def __init__(self, loop: VirtualLoop, wrong: float) -> None:
        """So many seconds are added whenever the time of day is asked for."""
        super().__init__()
        self._loop = loop
        self.wrong = wrong

    def _wall(self) -> int:
        return self._loop.nanoseconds() + round(self.wrong * 1e9)

    def _monotonic(self) -> int:
        return self._loop.nanoseconds()
