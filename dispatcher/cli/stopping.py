"""Ctrl-C and SIGTERM, for commands that run until they are told to end."""

from __future__ import annotations

import os
import queue
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SHOW_CURSOR = b"\x1b[?25h"


class Stop:
    """Whether the process was asked to end. Asked a second time, it ends at once."""

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None
        """The one that asked."""
        # An Event could deadlock: its lock may be held by the very code that the signal interrupts.
        self._asked: queue.SimpleQueue[None] = queue.SimpleQueue()

    def wait(self, seconds: float) -> bool:
        """Until that is asked for, or a time has passed; whether it was."""
        if self.signal is None:
            try:
                self._asked.get(timeout=seconds)
            except queue.Empty:
                return False
        return True

    def receive(self, number: int, frame: FrameType | None) -> None:
        if self.signal is not None:
            if sys.stderr is not None and sys.stderr.isatty():
                os.write(sys.stderr.fileno(), SHOW_CURSOR)  # A live line had hidden it.
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        self.signal = signal.Signals(number)
        self._asked.put(None)


@contextmanager
def stopping() -> Iterator[Stop]:
    """Within the block SIGINT and SIGTERM only ask to end; one that is ignored already stays so."""
    stop = Stop()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, stop.receive)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
