"""How long an honest receiver waits for its events beside hostile ones, against without them.

The target: its p99 at most twice as long. One worker, in a process of its own; SIZE events, each once the
one before has arrived, timed from before `enqueue` until then by the receiver's process. Beside it are
receivers of the same tenant: 24 requests are kept to the deadline by silent and slow ones, and with each
event there is one for a receiver that answers without end, with a bomb, with garbage, a reset or no TLS.
"""

from __future__ import annotations

from statistics import quantiles
from time import monotonic_ns
from typing import NamedTuple

from dispatcher.core.policy import RetryPolicy
from dispatcher.live import Dispatcher
from tests.acceptance.crowd import crowd_elsewhere
from tests.acceptance.elsewhere import worker_elsewhere
from tests.acceptance.lively import OPEN, MovedClock, eventually
from tests.acceptance.mob import PINNING, QUICK, mob_elsewhere
from tests.bench.measure import arguments, in_turns, print_line, summary
from tests.ramdisk import ramdisk

PINNED = 8
EVENTS = 200
ONCE = RetryPolicy(max_attempts=1, waits=(), retryable=())


class Waited(NamedTuple):
    """Seconds from `enqueue` to arrival, of the median event and of the slowest in a hundred."""

    p50: float
    p99: float


def measure(events: int, *, hostile: bool) -> Waited:
    clock = MovedClock()
    with (
        ramdisk() as folder,
        Dispatcher(folder / "live.db", clock=clock, open_networks=OPEN) as live,
        mob_elsewhere() as mob,
        crowd_elsewhere() as crowd,
    ):
        live.register("honest", crowd.url("honest"))
        for kind in (*PINNING, *QUICK):
            live.register(kind, mob.url(kind), order="none", concurrency=PINNED, policy=ONCE)
        worker = worker_elsewhere(folder / "live.db", clock)
        if hostile:
            live.enqueue_many([(kind, 1) for kind in PINNING] * PINNED)
            eventually(lambda: all(mob.counts()[kind].made == PINNED for kind in PINNING))
        begun = {}
        for number in range(events):
            if hostile:
                live.enqueue([*QUICK][number % len(QUICK)], number)
            at = monotonic_ns()
            begun[live.enqueue("honest", number)] = at
            eventually(lambda: crowd.count() > number)  # noqa: B023
        worker.kill()
        waited = sorted((came.at - begun[came.event]) / 1e9 for came in crowd.came())
    cuts = quantiles(waited, n=100, method="inclusive")
    return Waited(cuts[49], cuts[98])


def main() -> None:
    given = arguments(__doc__, EVENTS)
    rounds = in_turns(
        {
            "alone": lambda: measure(given.size, hostile=False),
            "beside": lambda: measure(given.size, hostile=True),
        },
        given.rounds,
    )
    shown = {
        f"{side}_{name}_seconds": summary([getattr(one, name) for one in rounds[side]])
        for side in rounds
        for name in Waited._fields
    }
    ratio = shown["beside_p99_seconds"]["median"] / shown["alone_p99_seconds"]["median"]
    print_line("hostile", "at most 2", {"ratio": round(ratio, 3), "events": given.size, **shown})


if __name__ == "__main__":
    main()
