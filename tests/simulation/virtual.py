"""Time that is made up: whoever sleeps is woken at once, and the clock says that it took so long."""

from __future__ import annotations

import asyncio
import selectors
from typing import Any

from dispatcher.log.clock import ProcessClock

BEGINNING = 1_800_000_000 * 10**9
"""Of the world, in nanoseconds since 1970."""


class Deadlock(Exception):
    """Everybody waits, and nothing is going to happen any more."""


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

    def time(self) -> float:
        return self.seconds

    def nanoseconds(self) -> int:
        return BEGINNING + round(self.seconds * 1e9)


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
