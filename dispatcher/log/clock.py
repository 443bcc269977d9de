"""The time that live entries carry: milliseconds since 1970, never before the log's last entry."""

from __future__ import annotations

import logging
import time
from typing import Protocol

logger = logging.getLogger("dispatcher.log")


class Clock(Protocol):
    def now(self, last: int | None) -> int:
        """Milliseconds, not before `last`, the time of the log's last entry."""
        ...


class ProcessClock:
    """The wall clock as it was when first asked, and the time since: its later steps change nothing."""

    def __init__(self) -> None:
        self._ahead: int | None = None

    def now(self, last: int | None) -> int:
        since = self._monotonic() // 1_000_000
        if self._ahead is None:
            self._ahead = self._wall() // 1_000_000 - since
            if last is not None and last > since + self._ahead:
                logger.warning("the clock is %d ms behind the log", last - since - self._ahead)
        if last is not None:
            self._ahead = max(self._ahead, last - since)
        return since + self._ahead

    def _wall(self) -> int:
        """Nanoseconds since 1970, as the clock is set."""
        return time.time_ns()

    def _monotonic(self) -> int:
        """Nanoseconds that only go on."""
        return time.monotonic_ns()
