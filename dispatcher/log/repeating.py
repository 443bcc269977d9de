"""Something that is done again and again beside everything else."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Repeating:
    """Calls every so many seconds, in a thread of its own, from its making to `stop`."""

    def __init__(self, call: Callable[[], object], seconds: float, name: str) -> None:
        self._call = call
        self._seconds = seconds
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Returns when it is not being called any more."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(self._seconds):
            self._call()
