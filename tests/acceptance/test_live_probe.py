"""One test request, past the queue: does the endpoint answer?"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dispatcher.delivery.authentication import BearerToken
from dispatcher.delivery.verify import verify_webhook
from dispatcher.errors import Refused
from dispatcher.live import Dispatcher
from tests.acceptance.lively import MovedClock, enqueue, eventually_is, log_length, rows, state
from tests.acceptance.receiver import Receiver, Reply


def test_a_probe_is_a_signed_request_like_any_other(
    live: Dispatcher, receiver: Receiver, clock: MovedClock
) -> None:
    secret = live.register(
        "shop",
        receiver.url,
        method="PUT",
        headers=[("X-A", "b")],
        auth=BearerToken(token="t"),
    )
    found = live.test("shop")
    assert {**found, "duration_ms": 0} == {
        "ok": True,
        "status": 200,
        "error": None,
        "duration_ms": 0,
        "body_bytes": 0,
    }
    arrival = receiver.next()
    assert (arrival.method, arrival.body) == ("PUT", b'{"type":"dispatcher.test"}')
    assert (arrival.headers["x-a"], arrival.headers["authorization"]) == ("b", "Bearer t")
    assert arrival.event.startswith("test_")
    verify_webhook(arrival.body, arrival.headers, secret, now=clock.ms / 1000)


def test_a_probe_passes_the_queue_reaches_a_disabled_endpoint_and_leaves_no_trace(
    live: Dispatcher, receiver: Receiver, database: Path
) -> None:
    live.register("shop", receiver.url)
    enqueue(live, "one")
    live.disable("shop")
    length = log_length(database)
    for _ in range(2):
        assert live.test("shop")["ok"]
    assert len({arrival.event for arrival in receiver.take(2)}) == 2, "each has an id of its own"
    assert log_length(database) == length
    assert rows(database, "SELECT * FROM dispatcher_claims") == []
    assert state(live, "one") == "held"


def test_a_probe_tells_what_went_wrong(live: Dispatcher, receiver: Receiver) -> None:
    live.register("shop", receiver.url)
    body = b"x" * 5000
    answers = []

    async def within_a_loop() -> None:
        answers.append(live.test("shop"))

    for reply in (Reply(503, (), body), Reply(302), Reply(404)):
        receiver.otherwise = reply
        asyncio.run(within_a_loop())
    assert [(found["ok"], found["status"], found["error"]) for found in answers] == [
        (False, 503, None),
        (False, 302, None),
        (False, 404, None),
    ]
    assert answers[0]["body_bytes"] == 1024
    live.register("closed", "http://127.0.0.2:1/hook")
    refused = live.test("closed")
    assert (refused["ok"], refused["status"], refused["error"]) == (False, 0, "connection_refused")


def test_a_probe_needs_an_endpoint_and_signs_with_what_still_signs(
    live: Dispatcher, receiver: Receiver, clock: MovedClock
) -> None:
    with pytest.raises(Refused) as refused:
        live.test("none")
    assert (refused.value.code, refused.value.exit_code) == ("unknown_endpoint", 3)
    live.register("shop", receiver.url)
    live.rotate_secret("shop", keep_for=60)
    live.test("shop")
    clock.move(61)
    live.test("shop")
    assert [len(arrival.headers["webhook-signature"].split()) for arrival in receiver.take(2)] == [2, 1]


def test_a_probe_beside_a_worker_sends_for_itself(live: Dispatcher, receiver: Receiver) -> None:
    live.register("shop", receiver.url)
    with live.worker():
        enqueue(live, "one")
        eventually_is(live, "one", "delivered")
        assert live.test("shop")["ok"]
        enqueue(live, "two")
        eventually_is(live, "two", "delivered")
