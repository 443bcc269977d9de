"""A worker that stands still past its lease, and goes on when others have done its work."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from dispatcher.live import Dispatcher
from tests.acceptance.elsewhere import worker_elsewhere
from tests.acceptance.lively import (
    LEASE_SECONDS,
    MovedClock,
    attempts,
    enqueue,
    entries,
    eventually_is,
    log_length,
    state,
)
from tests.acceptance.receiver import Receiver


def test_a_worker_stopped_past_its_lease_overturns_nothing_when_it_goes_on(
    live: Dispatcher, receiver: Receiver, database: Path, clock: MovedClock
) -> None:
    """It would have said that the event is dead, which another worker has delivered meanwhile."""
    live.register("shop", receiver.url)
    receiver.answer("one", 404, 200)
    worker = worker_elsewhere(database, clock, name="stopped", tells=True)
    pid = worker.process.pid
    assert pid is not None
    with receiver.holding():
        enqueue(live, "one", "two", "three")
        assert receiver.next().event == "one"
        os.kill(pid, signal.SIGSTOP)
    clock.move(LEASE_SECONDS + 1)
    with live.worker(name="other"):
        eventually_is(live, "one", "pending", attempts=1)
        assert attempts(live, "one") == [(0, "lost")]
        receiver.assert_quiet()
        clock.move(30)
        for event_id in ("one", "two", "three"):
            assert receiver.next().event == event_id
            eventually_is(live, event_id, "delivered")
    before = log_length(database)
    os.kill(pid, signal.SIGCONT)
    assert "dropped the late result of default/shop/one" in worker.hear()
    assert log_length(database) == before
    assert state(live, "one") == "delivered"
    assert entries(live, "one") == ["Enqueued", "AttemptRecorded", "AttemptRecorded"]
    enqueue(live, "four")
    assert receiver.next().event == "four", "it works on"
    eventually_is(live, "four", "delivered", attempts=1)
    worker.line.send("stop")
    assert worker.hear() == "stopped"
    assert worker.ended() == 0
    receiver.assert_quiet()
