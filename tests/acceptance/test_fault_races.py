"""Many processes on one database at once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from dispatcher.audit.verify import verify
from dispatcher.live import Dispatcher
from tests.acceptance.crowd import crowd_elsewhere
from tests.acceptance.elsewhere import enqueuer_elsewhere, worker_elsewhere
from tests.acceptance.lively import MovedClock, eventually, rows
from tests.acceptance.reckoning import assert_conserved, assert_told_as_it_came

PROCESSES, EACH, ENDPOINTS = 8, 200, 10
PENDING = "SELECT count(*) FROM dispatcher_deliveries WHERE state = 'pending'"


def test_eight_processes_enqueue_while_others_deliver_and_read_and_nobody_is_locked_out(
    live: Dispatcher, database: Path, clock: MovedClock
) -> None:
    with crowd_elsewhere() as crowd:
        endpoint_ids = [f"shop-{number}" for number in range(ENDPOINTS)]
        for endpoint_id in endpoint_ids:
            live.register(endpoint_id, crowd.url(endpoint_id))
        workers = [worker_elsewhere(database, clock, name=name) for name in "ab"]
        enqueuers = [enqueuer_elsewhere(database, clock) for _ in range(PROCESSES)]
        for number, enqueuer in enumerate(enqueuers):
            pairs = [(endpoint_ids[n % ENDPOINTS], f"evt-{number}-{n}") for n in range(EACH)]
            enqueuer.line.send(pairs)
        # Reading meanwhile: whatever moment a reader sees is in order.
        for _ in range(3):
            assert verify(database).findings == []
            assert live.dead_letters("shop-0") == []
        answers = [enqueuer.hear() for enqueuer in enqueuers for _ in range(EACH)]
        assert Counter(answers) == Counter(
            f"evt-{number}-{n}" for number in range(PROCESSES) for n in range(EACH)
        )
        eventually(lambda: rows(database, PENDING) == [(0,)])
        for process in (*workers, *enqueuers):
            process.line.send(None)
            assert process.ended() == 0
        events = assert_told_as_it_came(database, crowd.came())
    assert {event.end for event in events.values()} == {"delivered"}
    assert {len(event.tries) for event in events.values()} == {1}, "each was sent once"
    assert_conserved(database, delivered=PROCESSES * EACH)
    length = 1 + ENDPOINTS + 2 * PROCESSES * EACH
    counted = rows(database, "SELECT min(position), max(position), count(*) FROM dispatcher_log")
    assert counted == [(1, length, length)]
