"""Workers that are stopped: nothing is lost, and what was cut off does not count."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

from dispatcher.live import Dispatcher
from tests.acceptance.elsewhere import worker_elsewhere
from tests.acceptance.lively import (
    OPEN,
    PATIENCE_SECONDS,
    HeldClock,
    MovedClock,
    Prompted,
    entries,
    eventually,
    eventually_is,
    rows,
    state,
)
from tests.acceptance.receiver import Receiver


def test_a_stopped_worker_lets_its_requests_finish(live: Dispatcher, receiver: Receiver) -> None:
    live.register("shop", receiver.url)
    with live.worker() as worker, receiver.holding(), ThreadPoolExecutor() as pool:
        live.enqueue("shop", 1, event_id="one")
        receiver.next()
        stopping = pool.submit(worker.stop)
        eventually(stopping.running)
        assert state(live, "one") == "pending"
        receiver.release()
        stopping.result(PATIENCE_SECONDS)
        assert state(live, "one") == "delivered"


def test_what_a_stopped_worker_cuts_off_is_released_and_does_not_count(
    live: Dispatcher, receiver: Receiver, database: Path
) -> None:
    live.register("shop", receiver.url)
    live.enqueue("shop", 1, event_id="one")
    due_at = live.status("shop", "one")["next_attempt_at"]
    with receiver.holding():
        for _ in range(7):
            with live.worker(grace=0):
                receiver.next()
        status = live.status("shop", "one")
        assert (status["state"], status["attempts"], status["next_attempt_at"]) == ("pending", 0, due_at)
    assert rows(database, "SELECT count(*) FROM dispatcher_claims") == [(0,)]
    assert entries(live, "one") == ["Enqueued"] + ["AttemptReleased"] * 7
    with live.worker():
        eventually_is(live, "one", "delivered", attempts=1)


def test_a_worker_in_another_process_is_stopped_in_order(
    live: Dispatcher, receiver: Receiver, database: Path, clock: MovedClock
) -> None:
    live.register("shop", receiver.url)
    live.enqueue("shop", 1, event_id="one")
    with receiver.holding():
        worker = worker_elsewhere(database, clock, grace=0)
        receiver.next()
        worker.line.send("stop")
        assert worker.hear() == "stopped"
        assert worker.ended() == 0
    assert entries(live, "one") == ["Enqueued", "AttemptReleased"]


def test_a_worker_stopped_at_once_ends(live: Dispatcher) -> None:
    for _ in range(20):
        with live.worker():
            pass


def test_a_result_that_waits_to_be_recorded_when_its_worker_is_stopped_is_recorded(database: Path) -> None:
    """It waits because something else is being written."""
    clock, transport = HeldClock(), Prompted()
    with Dispatcher(database, clock=clock, open_networks=OPEN, transport=transport) as live:
        live.register("shop", "http://127.0.0.1:1/hook")
        live.enqueue("shop", 1, event_id="one")
        with live.worker(grace=0, poll=PATIENCE_SECONDS) as worker, ThreadPoolExecutor() as pool:
            assert transport.asked.wait(PATIENCE_SECONDS)
            with clock.held():
                other = pool.submit(live.enqueue, "shop", 2, event_id="two")
                assert clock.reached.wait(PATIENCE_SECONDS)
                transport.may_answer.set()
                assert transport.answered.wait(PATIENCE_SECONDS)
                wait([pool.submit(worker.stop)], timeout=0.1)
            assert other.result(PATIENCE_SECONDS) == "two"
        eventually(lambda: entries(live, "one") == ["Enqueued", "AttemptRecorded"])
        assert rows(database, "SELECT count(*) FROM dispatcher_claims") == [(0,)]
