"""What arrives at a receiver, and in which order, over failures and revivals."""

from __future__ import annotations

import pytest

from dispatcher.live import Dispatcher
from tests.acceptance.lively import (
    QUICK,
    MovedClock,
    attempts,
    enqueue,
    entries,
    eventually,
    eventually_is,
    state,
)
from tests.acceptance.receiver import Receiver, Reply


def test_a_failing_event_holds_back_those_behind_it_until_it_is_delivered(
    live: Dispatcher, receiver: Receiver, clock: MovedClock
) -> None:
    live.register("shop", receiver.url, policy=QUICK)
    receiver.answer("one", 503, 500, 200)
    enqueue(live, "one", "two", "three")
    with live.worker():
        assert receiver.next().event == "one"
        eventually_is(live, "one", "pending", attempts=1)
        assert live.status("shop", "one")["next_attempt_at"] == clock.ms + 10_000
        assert live.status("shop", "two")["waits_behind"] == "one"
        clock.move(10)
        assert receiver.next().event == "one"
        eventually_is(live, "one", "pending", attempts=2)
        clock.move(20)
        assert [arrival.event for arrival in receiver.take(3)] == ["one", "two", "three"]
        eventually_is(live, "three", "delivered", attempts=1)
    receiver.assert_quiet()
    assert attempts(live, "one") == [(503, None), (500, None), (200, None)]


def test_a_retry_comes_no_millisecond_too_early(
    live: Dispatcher, receiver: Receiver, clock: MovedClock
) -> None:
    """The other endpoint's event shows that the worker has looked."""
    live.register("shop", receiver.url, policy=QUICK)
    live.register("other", receiver.url)
    receiver.answer("one", 503, 200)
    enqueue(live, "one")
    with live.worker():
        receiver.next()
        eventually_is(live, "one", "pending", attempts=1)
        clock.move(9.999)
        enqueue(live, "look", endpoint_id="other")
        assert receiver.next().event == "look"
        receiver.assert_quiet()
        clock.move(0.001)
        assert receiver.next().event == "one"
        eventually_is(live, "one", "delivered", attempts=2)


def test_an_event_that_used_up_its_attempts_is_dead_and_lets_the_next_one_go(
    live: Dispatcher, receiver: Receiver, clock: MovedClock
) -> None:
    live.register("shop", receiver.url, policy=QUICK)
    receiver.answer("bad", 500)
    receiver.answer("refused", 404)
    enqueue(live, "bad", "refused", "good")
    with live.worker():
        for seconds, done in ((10, 1), (20, 2)):
            eventually_is(live, "bad", "pending", attempts=done)
            clock.move(seconds)
        eventually_is(live, "good", "delivered", attempts=1)
    assert receiver.events == ["bad", "bad", "bad", "refused", "good"]
    assert state(live, "bad") == state(live, "refused") == "dead"
    assert [dead["event_id"].rpartition("/")[2] for dead in live.dead_letters("shop")] == ["bad", "refused"]


def test_the_dead_come_back_at_their_original_place(live: Dispatcher, receiver: Receiver) -> None:
    live.register("shop", receiver.url, policy=QUICK)
    for event_id in ("one", "two", "three"):
        receiver.answer(event_id, 400, 200)
    with live.worker():
        enqueue(live, "one", "two", "three")
        eventually_is(live, "three", "dead", attempts=1)
        live.disable("shop")
        enqueue(live, "four")
        assert live.revive("shop", ["three"]) == 1
        assert live.revive("shop") == 2
        assert live.revive("shop") == 0
        live.enable("shop")
        eventually_is(live, "four", "delivered", attempts=1)
    assert receiver.events == ["one", "two", "three"] * 2 + ["four"]
    assert live.status("shop", "one")["attempts"] == 1
    assert entries(live, "one") == ["Enqueued", "AttemptRecorded", "Revived", "AttemptRecorded"]
    assert live.dead_letters("shop") == []


@pytest.mark.parametrize(
    ("status", "hint", "seconds"),
    [
        (503, "120", 120),
        (429, "120", 120),
        (503, "3", 10),
        (503, "soon", 10),
        (503, "86400", 3600),
        (500, "99", 10),
    ],
)
def test_a_receiver_says_when_to_try_again(
    live: Dispatcher, receiver: Receiver, clock: MovedClock, status: int, hint: str, seconds: int
) -> None:
    live.register("shop", receiver.url, policy=QUICK)
    receiver.answer("one", Reply(status, (("Retry-After", hint),)), 200)
    enqueue(live, "one")
    with live.worker():
        eventually_is(live, "one", "pending", attempts=1)
        assert live.status("shop", "one")["next_attempt_at"] == clock.ms + seconds * 1000
        clock.move(seconds)
        eventually_is(live, "one", "delivered", attempts=2)


def test_endpoints_do_not_wait_for_each_other(live: Dispatcher, receiver: Receiver) -> None:
    other = Receiver()
    try:
        live.register("shop", receiver.url)
        live.register("other", other.url)
        with live.worker(), receiver.holding():
            enqueue(live, "one")
            receiver.next()
            enqueue(live, "two", endpoint_id="other")
            assert other.next().event == "two"
            eventually(lambda: state(live, "two", "other") == "delivered")
            assert state(live, "one") == "pending"
    finally:
        other.close()


def test_ids_are_shown_as_they_were_given(live: Dispatcher, receiver: Receiver) -> None:
    """The log's ids name tenant and endpoint as well; whoever uses neither sees neither."""
    live.register("shop", receiver.url)
    receiver.answer("one", 404)
    enqueue(live, "one")
    with live.worker():
        eventually_is(live, "one", "dead", attempts=1)
    shown = [live.status("shop", "one"), *live.dead_letters("shop"), *live.history("shop", "one")]
    assert {entry["endpoint_id"] for entry in shown} == {"shop"}
    assert {entry.get("event_id", entry.get("delivery_id")) for entry in shown} == {"one"}
