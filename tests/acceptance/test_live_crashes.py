"""Workers that die or hang, at named moments."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from dispatcher.live import Dispatcher
from tests.acceptance.conftest import Opened
from tests.acceptance.elsewhere import worker_elsewhere
from tests.acceptance.lively import (
    LEASE_SECONDS,
    MovedClock,
    attempts,
    entries,
    eventually,
    eventually_is,
    locked,
    state,
)
from tests.acceptance.receiver import Receiver

LOST = (0, "lost")


def eventually_attempted(live: Dispatcher, times: int) -> None:
    eventually(lambda: len(attempts(live, "one")) == times)


def test_killed_in_the_middle_of_every_request_its_attempts_are_counted_until_it_is_dead(
    live: Dispatcher, receiver: Receiver, database: Path, clock: MovedClock
) -> None:
    """Each time a worker of the same name takes over, unaided, once the lease has ended."""
    live.register("shop", receiver.url)
    live.enqueue("shop", 1, event_id="one")
    live.enqueue("shop", 2, event_id="two")
    with receiver.holding():
        for done in range(6):
            worker = worker_elsewhere(database, clock)
            assert receiver.next().event == "one"
            assert live.status("shop", "one")["attempts"] == done
            worker.kill()
            clock.move(LEASE_SECONDS + 300)
            sweeper = worker_elsewhere(database, clock)
            eventually_attempted(live, done + 1)
            if done < 5:
                receiver.assert_quiet()
                sweeper.line.send("stop")
                assert sweeper.hear() == "stopped"
                assert sweeper.ended() == 0
                clock.move(300)
        assert attempts(live, "one") == [LOST] * 6
        assert state(live, "one") == "dead"
        assert receiver.next().event == "two"
        receiver.release()
        eventually_is(live, "two", "delivered", attempts=1)
        sweeper.kill()
    assert receiver.events == ["one"] * 6 + ["two"]


def test_a_claim_of_a_dead_worker_holds_until_its_lease_has_ended(
    live: Dispatcher, receiver: Receiver, database: Path, clock: MovedClock
) -> None:
    live.register("shop", receiver.url)
    live.register("other", f"http://{receiver.address}/other")
    live.enqueue("shop", 1, event_id="one")
    with receiver.holding():
        worker = worker_elsewhere(database, clock)
        receiver.next()
        worker.kill()
    with live.worker():
        clock.move(LEASE_SECONDS)
        live.enqueue("other", 1, event_id="look")
        assert receiver.next().event == "look"
        assert state(live, "one") == "pending"
        assert attempts(live, "one") == []
        clock.move(0.001)
        eventually_is(live, "one", "pending", attempts=1)
        clock.move(30)
        assert receiver.next().event == "one"
        eventually_is(live, "one", "delivered", attempts=2)
    assert attempts(live, "one") == [LOST, (200, None)]


def test_killed_before_it_sends_the_attempt_counts_as_lost(
    live: Dispatcher, receiver: Receiver, database: Path, clock: MovedClock
) -> None:
    live.register("shop", receiver.url)
    live.enqueue("shop", 1, event_id="one")
    worker = worker_elsewhere(database, clock, sends=False)
    assert worker.ended() == -9
    assert receiver.seen == []
    clock.move(LEASE_SECONDS + 1)
    with live.worker():
        eventually_is(live, "one", "pending", attempts=1)
        clock.move(30)
        eventually_is(live, "one", "delivered", attempts=2)
    assert attempts(live, "one") == [LOST, (200, None)]


def test_killed_between_the_answer_and_its_record_the_event_is_sent_again_under_the_same_id(
    live: Dispatcher, receiver: Receiver, database: Path, clock: MovedClock
) -> None:
    """The one double send that nobody can prevent."""
    live.register("shop", receiver.url)
    live.enqueue("shop", 1, event_id="one")
    with receiver.holding():
        worker = worker_elsewhere(database, clock)
        first = receiver.next()
        with locked(database):
            receiver.release()
            worker.kill()
    clock.move(LEASE_SECONDS + 1)
    with live.worker():
        eventually_is(live, "one", "pending", attempts=1)
        clock.move(30)
        again = receiver.next()
        eventually_is(live, "one", "delivered", attempts=2)
    assert (again.event, again.body) == (first.event, first.body)
    assert again.headers["idempotency-key"] == first.headers["idempotency-key"]


def test_a_late_result_of_a_worker_that_was_given_up_is_dropped(
    live: Dispatcher, receiver: Receiver, opened: Opened, clock: MovedClock, caplog: pytest.LogCaptureFixture
) -> None:
    """It comes after another worker has delivered: neither the state nor the log is changed by it."""
    live.register("shop", receiver.url)
    live.register("other", f"http://{receiver.address}/other")
    live.enqueue("shop", 1, event_id="one")
    receiver.answer("one", 404, 200)
    other = opened()
    with live.worker(name="slow"), receiver.holding():
        receiver.next()
        clock.move(LEASE_SECONDS + 1)
        eventually_is(live, "one", "pending", attempts=1)
        clock.move(30)
        receiver.next()
        length = len(entries(live, "one"))
        with caplog.at_level(logging.WARNING, logger="dispatcher.worker"):
            receiver.release()
            eventually_is(other, "one", "delivered", attempts=2)
            eventually(lambda: "dropped the late result" in caplog.text)
    assert len(entries(live, "one")) == length + 1
    assert attempts(live, "one") == [LOST, (200, None)]
    assert "default/shop/one" in caplog.text


def test_receivers_that_do_not_answer_are_tried_again(
    live: Dispatcher, receiver: Receiver, clock: MovedClock
) -> None:
    port = receiver.address.rpartition(":")[2]
    live.register("shop", f"http://127.0.0.2:{port}/hook")
    live.enqueue("shop", 1, event_id="one")
    with live.worker():
        eventually_is(live, "one", "pending", attempts=1)
        assert attempts(live, "one") == [(0, "connection_refused")]
        live.update("shop", url=receiver.url)
        clock.move(30)
        eventually_is(live, "one", "delivered", attempts=2)
