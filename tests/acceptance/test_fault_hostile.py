"""Hostile receivers beside an honest one: they delay nobody and take no memory."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

from dispatcher.core.policy import RetryPolicy
from dispatcher.live import Dispatcher
from tests.acceptance.crowd import crowd_elsewhere
from tests.acceptance.elsewhere import worker_elsewhere
from tests.acceptance.lively import MovedClock, eventually, rows
from tests.acceptance.mob import PINNING, QUICK, mob_elsewhere

PINNED = 8
HONEST = 24
FLOOD = 100
MOST_GROWTH_KIB = 30 * 1024
ONCE = RetryPolicy(max_attempts=1, waits=(), retryable=())
EXPECTED = {
    "endless-body": (200, None),
    "bomb": (200, None),
    "interim": (0, "invalid_response"),
    "reset": (0, "connection_reset"),
    "garbage": (0, "invalid_response"),
    "telling": (500, None),
    "tls": (0, "tls_failed"),
}


def test_an_honest_receiver_gets_everything_while_hostile_ones_keep_all_that_they_may(
    live: Dispatcher, database: Path, clock: MovedClock
) -> None:
    """Of one tenant, and one worker: every request that is kept is still kept at the end."""
    with mob_elsewhere() as mob, crowd_elsewhere() as crowd:
        for kind in (*PINNING, *QUICK):
            live.register(kind, mob.url(kind), order="none", concurrency=PINNED, policy=ONCE)
        live.register("honest", crowd.url("honest"))
        worker = worker_elsewhere(database, clock)
        for kind in PINNING:
            live.enqueue_many([(kind, 1)] * PINNED)
        eventually(lambda: all(mob.counts()[kind].made == PINNED for kind in PINNING))
        for number in range(HONEST):
            live.enqueue_many([*((kind, 1) for kind in QUICK), ("honest", number)])
        eventually(lambda: crowd.count() == HONEST)
        counts = mob.counts()
        worker.kill()
    assert {kind: counts[kind] for kind in PINNING} == dict.fromkeys(PINNING, (PINNED, 0))
    assert all(counts[kind].made >= 1 for kind in QUICK)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is told by /proc")
def test_hostile_receivers_take_no_memory(live: Dispatcher, database: Path, clock: MovedClock) -> None:
    """Measured at the worker's peak, so that what was freed since counts as well."""
    with mob_elsewhere() as mob, crowd_elsewhere() as crowd:
        for kind in QUICK:
            live.register(kind, mob.url(kind), order="none", policy=ONCE)
        live.register("honest", crowd.url("honest"), order="none")
        worker = worker_elsewhere(database, clock)
        peaks = []
        for kinds in (["honest"], [*QUICK]):
            for kind in kinds:
                live.enqueue_many([(kind, 1)] * FLOOD)
            eventually(lambda: rows(database, "SELECT sum(pending) FROM dispatcher_endpoints") == [(0,)])
            peaks.append(_peak_kib(worker.process.pid))
        worker.kill()
    assert peaks[1] - peaks[0] < MOST_GROWTH_KIB
    statement = "SELECT endpoint_id, last_status, last_error FROM dispatcher_deliveries"
    expected = {(f"default/{kind}", *outcome): FLOOD for kind, outcome in EXPECTED.items()}
    assert Counter(rows(database, statement)) == {**expected, ("default/honest", 200, None): FLOOD}


def _peak_kib(pid: int | None) -> int:
    """The most memory that a process ever held."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])
