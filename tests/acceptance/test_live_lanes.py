"""Which requests may be under way at the same time."""

from __future__ import annotations

import pytest

from dispatcher.errors import Refused
from dispatcher.live import Dispatcher
from tests.acceptance.lively import QUICK, MovedClock, eventually, eventually_is, state
from tests.acceptance.receiver import Receiver


def test_an_order_key_keeps_order_among_its_own_events_alone(
    live: Dispatcher, receiver: Receiver, clock: MovedClock
) -> None:
    live.register("shop", receiver.url, policy=QUICK)
    receiver.answer("a1", 503, 200)
    with live.worker():
        for event_id, key in (("a1", "a"), ("a2", "a"), ("b1", "b"), ("b2", "b"), ("none", None)):
            live.enqueue("shop", 0, event_id=event_id, order_key=key)
        for event_id in ("b1", "b2", "none"):
            eventually_is(live, event_id, "delivered")
        eventually_is(live, "a1", "pending", attempts=1)
        assert state(live, "a2") == "pending"
        clock.move(10)
        eventually_is(live, "a2", "delivered")
    arrived = receiver.events
    assert [event for event in arrived if event[0] == "a"] == ["a1", "a1", "a2"]
    assert [event for event in arrived if event[0] == "b"] == ["b1", "b2"]


def test_without_order_a_failing_event_holds_nothing_back(
    live: Dispatcher, receiver: Receiver, clock: MovedClock
) -> None:
    live.register("shop", receiver.url, policy=QUICK, order="none")
    receiver.answer("one", 503, 200)
    with pytest.raises(Refused) as refused:
        live.enqueue("shop", 0, event_id="keyed", order_key="a")
    assert refused.value.code == "order_key_refused"
    with live.worker():
        for event_id in ("one", "two", "three"):
            live.enqueue("shop", 0, event_id=event_id)
        eventually_is(live, "two", "delivered")
        eventually_is(live, "three", "delivered")
        eventually_is(live, "one", "pending", attempts=1)
        clock.move(10)
        eventually_is(live, "one", "delivered", attempts=2)


def test_a_changed_order_is_that_of_later_events(live: Dispatcher, receiver: Receiver) -> None:
    live.register("shop", receiver.url)
    live.enqueue("shop", 0, event_id="old-1")
    live.enqueue("shop", 0, event_id="old-2")
    live.update("shop", order="none")
    for event_id in ("new-1", "new-2"):
        live.enqueue("shop", 0, event_id=event_id)
    with receiver.holding(), live.worker():
        assert {arrival.event for arrival in receiver.take(3)} == {"old-1", "new-1", "new-2"}
        receiver.release()
        eventually_is(live, "old-2", "delivered")


def test_an_ordered_endpoint_gets_one_request_at_a_time(live: Dispatcher, receiver: Receiver) -> None:
    live.register("shop", receiver.url)
    ids = live.enqueue_many([("shop", n) for n in range(30)])
    with live.worker(), live.worker():
        eventually_is(live, ids[-1], "delivered")
    assert receiver.events == ids
    assert [int(arrival.body) for arrival in receiver.seen] == list(range(30))
    assert receiver.most_at_once["/hook"] == 1


def test_an_endpoint_gets_no_more_requests_at_once_than_its_limit(
    live: Dispatcher, receiver: Receiver
) -> None:
    live.register("shop", receiver.url, order="none", concurrency=3)
    ids = live.enqueue_many([("shop", n) for n in range(12)])
    with receiver.holding(), live.worker(), live.worker():
        first = receiver.take(3)
        _looked(live, receiver)
        receiver.release()
        rest = receiver.take(9)
    assert {arrival.event for arrival in first + rest} == set(ids)
    assert receiver.most_at_once["/hook"] == 3


def test_workers_send_no_more_at_once_than_their_limits(live: Dispatcher, receiver: Receiver) -> None:
    live.register("shop", receiver.url, order="none")
    ids = live.enqueue_many([("shop", n) for n in range(8)])
    with receiver.holding(), live.worker(concurrency=2), live.worker(concurrency=1):
        receiver.take(3)
        receiver.release()
        receiver.take(5)
        eventually(lambda: all(state(live, event_id) == "delivered" for event_id in ids))
    assert receiver.most_at_once["/hook"] == 3


def test_a_tenant_at_its_limit_delays_no_other_and_spends_no_attempts(
    live: Dispatcher, receiver: Receiver
) -> None:
    """64 for each tenant: the 65th waits, while another tenant's goes at once."""
    ids = {}
    for endpoint_id in (f"hook-{n}" for n in range(9)):
        live.register(endpoint_id, receiver.url, tenant="big", order="none")
        ids[endpoint_id] = live.enqueue_many([(endpoint_id, n) for n in range(8)], tenant="big")
    live.register("shop", f"http://{receiver.address}/small", tenant="small")
    with receiver.holding(), live.worker():
        receiver.take(64)
        live.enqueue("shop", 0, event_id="urgent", tenant="small")
        assert receiver.next().event == "urgent"
        receiver.release()
        receiver.take(8)
    assert receiver.most_at_once["/hook"] == 64
    for endpoint_id, event_ids in ids.items():
        assert {live.status(endpoint_id, event_id, tenant="big")["attempts"] for event_id in event_ids} == {1}


def _looked(live: Dispatcher, receiver: Receiver) -> None:
    """Until the workers have looked again, and found what may be sent."""
    live.register("look", f"http://{receiver.address}/look")
    live.enqueue("look", 0, event_id="look")
    assert receiver.next().event == "look"
