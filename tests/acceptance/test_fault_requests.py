"""What every attempt of an event holds, sent by one process and again by another."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from dispatcher.live import Dispatcher
from tests.acceptance.elsewhere import worker_elsewhere
from tests.acceptance.lively import QUICK, MovedClock, eventually_is
from tests.acceptance.receiver import Arrival, Receiver
from tests.acceptance.test_live_requests import SECRET, is_signed

PAYLOADS: list[tuple[Any, bytes]] = [
    (0, b"0"),
    (False, b"false"),
    (None, b"null"),
    ("", b""),
    (b"", b""),
    ({}, b"{}"),
    ([], b"[]"),
    ('""', b'""'),
    ({"n": "é 😱"}, '{"n":"é 😱"}'.encode()),
    ({"id": 616581622363398142, "most": 2**64 - 1}, b'{"id":616581622363398142,"most":18446744073709551615}'),
    ({"b": 1, "a": {"d": 2, "c": 3}}, b'{"b":1,"a":{"d":2,"c":3}}'),
    (' { "spaced" : 1.0 }\r\n', b' { "spaced" : 1.0 }\r\n'),
]


def test_each_attempt_holds_the_same_bytes_and_signatures_that_the_standard_accepts(
    live: Dispatcher, receiver: Receiver, database: Path, clock: MovedClock
) -> None:
    """While the secret is rotated by the old one and the new one, and afterwards by the new one alone."""
    live.register("shop", receiver.url, secret=SECRET, order="none", policy=QUICK)
    fresh = live.rotate_secret("shop", keep_for=15)
    bodies: dict[str, bytes] = {}
    for number, (payload, body) in enumerate(PAYLOADS):
        event_id = f"evt-{number}"
        bodies[event_id] = body
        receiver.answer(event_id, 503, 503, 200)
        live.enqueue("shop", payload, event_id=event_id)
    arrivals: dict[str, list[Arrival]] = defaultdict(list)
    for attempt, wait in enumerate((10, 20, 0), start=1):
        worker = worker_elsewhere(database, clock)
        for arrival in receiver.take(len(PAYLOADS)):
            arrivals[arrival.event].append(arrival)
            assert arrival.body == bodies[arrival.event]
            assert is_signed(arrival, SECRET) == (attempt < 3)
            assert is_signed(arrival, fresh)
        for event_id in bodies:
            eventually_is(live, event_id, "pending" if wait else "delivered", attempts=attempt)
        worker.kill()
        clock.move(wait)
    receiver.assert_quiet()
    for same in arrivals.values():
        first, *others = (_lasting(arrival) for arrival in same)
        assert others == [first, first]


def _lasting(arrival: Arrival) -> tuple[Any, ...]:
    """All of a request but what tells its attempt."""
    of_attempt = ("webhook-timestamp", "webhook-signature")
    headers = {name: value for name, value in arrival.headers.items() if name not in of_attempt}
    return arrival.method, arrival.path, headers, arrival.body
