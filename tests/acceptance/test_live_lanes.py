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


def test_while_one_key_waits_for_an_answer_another_goes_on(live: Dispatcher, receiver: Receiver) -> None:
    live.register("shop", receiver.url)
    for event_id in ("a1", "a2", "b1", "b2"):
        live.enqueue("shop", 0, event_id=event_id, order_key=event_id[0])
    with receiver.holding(), live.worker(), live.worker():
        assert {arrival.event for arrival in receiver.take(2)} == {"a1", "b1"}
        _looked(live, receiver)
        receiver.release()
        assert {arrival.event for arrival in receiver.take(2)} == {"a2", "b2"}
    assert receiver.most_at_once["/hook"] == 2


def test_events_with_keys_count_towards_the_limit_of_their_endpoint(
    live: Dispatcher, receiver: Receiver
) -> None:
    live.register("shop", receiver.url, concurrency=2)
    for n in range(8):
        live.enqueue("shop", n, order_key=f"customer-{n}")
    with receiver.holding(), live.worker(), live.worker():
        receiver.take(2)
        _looked(live, receiver)
        receiver.release()
        receiver.take(6)
    assert receiver.most_at_once["/hook"] == 2


def test_published_events_keep_the_order_of_their_key_at_each_endpoint(
    live: Dispatcher, receiver: Receiver
) -> None:
    """Among those that were enqueued, too; an endpoint that keeps no order has them all at once."""
    for endpoint_id, order in (("shop", "strict"), ("mail", "strict"), ("free", "none")):
        live.register(endpoint_id, f"http://{receiver.address}/{endpoint_id}", order=order)  # type: ignore[arg-type]
    for n in range(1, 4):
        for key in "ab":
            live.publish("user.created", n, event_id=f"{key}{n}", order_key=key)
        live.enqueue("shop", n, event_id=f"a{n}-own", order_key="a")
    with receiver.holding(), live.worker():
        first = receiver.take(10)
        _looked(live, receiver)
        receiver.release()
        arrived = first + receiver.take(11)
    assert sorted(arrival.path for arrival in first) == ["/free"] * 6 + ["/mail"] * 2 + ["/shop"] * 2
    came = {
        path: [arrival.event for arrival in arrived if arrival.path == path]
        for path in ("/shop", "/mail", "/free")
    }
    assert [event for event in came["/shop"] if event[0] == "a"] == [
        "a1", "a1-own", "a2", "a2-own", "a3", "a3-own",
    ]  # fmt: skip
    for path, key in (("/shop", "b"), ("/mail", "a"), ("/mail", "b")):
        assert [event for event in came[path] if event[0] == key] == [f"{key}1", f"{key}2", f"{key}3"]
    assert len(came["/free"]) == 6
    assert receiver.most_at_once["/free"] == 6


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


def test_an_order_that_is_kept_from_now_on_does_not_hold_back_what_was_free(
    live: Dispatcher, receiver: Receiver
) -> None:
    live.register("shop", receiver.url, order="none")
    for event_id in ("free-1", "free-2"):
        live.enqueue("shop", 0, event_id=event_id)
    live.update("shop", order="strict")
    for event_id in ("new-1", "new-2"):
        live.enqueue("shop", 0, event_id=event_id)
    with receiver.holding(), live.worker():
        assert {arrival.event for arrival in receiver.take(3)} == {"free-1", "free-2", "new-1"}
        _looked(live, receiver)
        receiver.release()
        assert receiver.next().event == "new-2"


def test_a_changed_limit_is_that_of_the_next_requests(live: Dispatcher, receiver: Receiver) -> None:
    live.register("shop", receiver.url, order="none", concurrency=1)
    live.enqueue_many([("shop", n) for n in range(6)])
    with receiver.holding(), live.worker():
        receiver.take(1)
        live.update("shop", concurrency=4)
        receiver.take(3)
        _looked(live, receiver)
        receiver.release()
        receiver.take(2)
    assert receiver.most_at_once["/hook"] == 4


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
