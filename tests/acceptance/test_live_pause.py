"""Endpoints that are disabled, and what is done to events meanwhile and while they are sent."""

from __future__ import annotations

import pytest

from dispatcher.errors import Refused
from dispatcher.live import Dispatcher
from tests.acceptance.lively import (
    QUICK,
    MovedClock,
    enqueue,
    eventually_is,
    state,
)
from tests.acceptance.receiver import Receiver, Reply


def test_a_disabled_endpoint_holds_its_events_and_resumes_when_it_is_enabled(
    live: Dispatcher, receiver: Receiver, clock: MovedClock
) -> None:
    live.register("shop", receiver.url, policy=QUICK)
    live.register("other", receiver.url)
    receiver.answer("one", 503, 400, 200)
    with live.worker():
        enqueue(live, "one")
        eventually_is(live, "one", "pending", attempts=1)
        live.disable("shop", "maintenance")
        enqueue(live, "two")
        clock.move(3600)
        enqueue(live, "look", endpoint_id="other")
        assert [arrival.event for arrival in receiver.take(2)] == ["one", "look"]
        assert state(live, "one") == state(live, "two") == "held"
        assert live.status("shop", "one")["disabled"] == "maintenance"
        live.enable("shop")
        assert [arrival.event for arrival in receiver.take(2)] == ["one", "two"]
        eventually_is(live, "two", "delivered")
        assert state(live, "one") == "dead"
        live.disable("shop")
        live.enable("shop", replay_dead=True)
        assert receiver.next().event == "one"
        eventually_is(live, "one", "delivered", attempts=1)
    receiver.assert_quiet()


def test_enabling_what_is_enabled_revives_nothing(live: Dispatcher, receiver: Receiver) -> None:
    live.register("shop", receiver.url)
    receiver.answer("one", 400)
    enqueue(live, "one")
    with live.worker():
        eventually_is(live, "one", "dead")
    with pytest.raises(Refused) as refused:
        live.enable("shop", replay_dead=True)
    assert refused.value.code == "not_disabled"
    assert state(live, "one") == "dead"


def test_the_result_of_a_request_in_flight_counts_though_its_endpoint_was_disabled(
    live: Dispatcher, receiver: Receiver, clock: MovedClock
) -> None:
    live.register("shop", receiver.url, policy=QUICK)
    receiver.answer("one", 503, 200)
    with live.worker(), receiver.holding():
        enqueue(live, "one")
        receiver.next()
        live.disable("shop")
        receiver.release()
        eventually_is(live, "one", "held", attempts=1)
        live.enable("shop")
        receiver.next()
        eventually_is(live, "one", "delivered", attempts=2)


def test_what_was_revived_ahead_waits_for_the_request_in_flight(live: Dispatcher, receiver: Receiver) -> None:
    live.register("shop", receiver.url)
    receiver.answer("one", 400, 200)
    enqueue(live, "one")
    with live.worker():
        receiver.next()
        eventually_is(live, "one", "dead")
        with receiver.holding():
            enqueue(live, "two")
            assert receiver.next().event == "two"
            live.revive("shop", ["one"])
        assert receiver.next().event == "one"
        eventually_is(live, "one", "delivered")
    assert state(live, "two") == "delivered"
    assert receiver.most_at_once["/hook"] == 1


def test_an_event_is_cancelled_unless_it_is_being_sent(live: Dispatcher, receiver: Receiver) -> None:
    live.register("shop", receiver.url)
    with live.worker(), receiver.holding():
        enqueue(live, "one", "two", "three")
        receiver.next()
        with pytest.raises(Refused) as refused:
            live.cancel("shop", "one")
        assert refused.value.code == "in_flight"
        live.cancel("shop", "two")
        receiver.release()
        eventually_is(live, "three", "delivered")
    assert receiver.events == ["one", "three"]
    assert state(live, "two") == "cancelled"
    for event_id, code in (("one", "not_pending"), ("two", "not_pending"), ("none", "unknown_event")):
        with pytest.raises(Refused) as refused:
            live.cancel("shop", event_id)
        assert refused.value.code == code


@pytest.mark.parametrize("disables", [True, False])
def test_410_is_the_end_of_an_event_and_where_asked_of_its_endpoint(
    live: Dispatcher, receiver: Receiver, disables: bool
) -> None:
    live.register("shop", receiver.url, disable_when_gone=disables)
    receiver.answer("one", Reply(410, (), b"gone for good"))
    enqueue(live, "one", "two")
    with live.worker():
        eventually_is(live, "one", "dead", attempts=1)
        eventually_is(live, "two", "held" if disables else "delivered")
    assert live.status("shop", "one")["disabled"] == ("gone" if disables else None)
