"""How long it takes from the call of `Dispatcher.enqueue` until the request is at its receiver.

One event after the other, each when the worker has been idle for a while, at moments spread evenly over its
poll interval. here: the worker is in the process that enqueues. elsewhere: it is in another process, and
looks for work 20 times a second. The receiver is a process of its own; all processes share one clock.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import quantiles
from typing import Any

from dispatcher import Dispatcher
from tests.bench.live import PAYLOAD, build, fresh, opened, until_recorded, worker_elsewhere
from tests.bench.measure import arguments, in_turns, print_line, summary
from tests.bench.receiver import Receiver

POLL_MS = 50
STEP_MS = 7
"""Has no divisor in common with the poll's: so each of the moments comes as often as any other."""


class Latency:
    def __init__(self, folder: Path, receiver: Receiver, events: int) -> None:
        self._receiver = receiver
        self._events = events
        self._built, self._copy = folder / "built.db", folder / "measured.db"
        build(self._built, {"endpoint": f"{receiver.url}/endpoint"}, [])

    def here(self) -> list[float]:
        with opened(fresh(self._built, self._copy)) as live, live.worker():
            return self._enqueued(live)

    def elsewhere(self) -> list[float]:
        with worker_elsewhere(fresh(self._built, self._copy)), opened(self._copy) as live:
            return self._enqueued(live)

    def _enqueued(self, live: Dispatcher) -> list[float]:
        """Seconds of each event."""
        took = []
        for n in range(self._events):
            until_recorded(self._copy)
            time.sleep((POLL_MS + n * STEP_MS % POLL_MS) / 1000)
            self._receiver.expect(1)
            start = time.monotonic()
            live.enqueue("endpoint", PAYLOAD)
            took.append(self._receiver.arrived().at - start)
        until_recorded(self._copy)
        return took


def shown(side: str, rounds: Sequence[Sequence[float]]) -> dict[str, Any]:
    """The middle of each round, and what one of a hundred is above."""
    hundredths = [quantiles(took, n=100, method="inclusive") for took in rounds]
    return {
        f"{side}_p50_seconds": summary([cuts[49] for cuts in hundredths]),
        f"{side}_p99_seconds": summary([cuts[98] for cuts in hundredths]),
    }


def main() -> None:
    given = arguments(__doc__, 200)
    with tempfile.TemporaryDirectory() as folder, Receiver() as receiver:
        latency = Latency(Path(folder), receiver, given.size)
        measured = in_turns({"here": latency.here, "elsewhere": latency.elsewhere}, given.rounds)
    line = {
        **shown("here", measured["here"]),
        **shown("elsewhere", measured["elsewhere"]),
        "events": given.size,
    }
    print_line("latency", "reported", line)


if __name__ == "__main__":
    main()
