"""Many events accepted at once: all or none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dispatcher.errors import DispatcherError
from dispatcher.live import Dispatcher
from tests.acceptance.lively import log_length, rows
from tests.acceptance.receiver import Receiver


def test_pairs_and_mappings_are_accepted_in_their_order(live: Dispatcher, receiver: Receiver) -> None:
    for tenant in ("default", "other"):
        live.register("shop", receiver.url, tenant=tenant)
    ids = live.enqueue_many(
        [
            ("shop", {"n": 1}),
            {
                "endpoint_id": "shop",
                "payload": "two",
                "event_id": "two",
                "content_type": "text/plain",
                "headers": [("X-A", "b")],
            },
            {"endpoint_id": "shop", "payload": b"three", "tenant": "other", "event_id": "two"},
        ]
    )
    assert ids[1:] == ["two", "two"]
    with live.worker():
        arrived = receiver.take(3)
    mine = [arrival for arrival in arrived if arrival.body != b"three"]
    assert [arrival.event for arrival in mine] == ids[:2]
    assert mine[1].body == b"two"
    assert (mine[1].headers["content-type"], mine[1].headers["x-a"]) == ("text/plain", "b")


def test_a_repeat_within_them_or_of_an_earlier_one_is_accepted_once(live: Dispatcher, database: Path) -> None:
    live.register("shop", "http://127.0.0.1:1/hook")
    live.enqueue("shop", 1, event_id="earlier")
    event: dict[str, Any] = {"endpoint_id": "shop", "payload": 1, "event_id": "one"}
    again = {**event, "event_id": "earlier"}
    assert live.enqueue_many([event, event, again]) == ["one", "one", "earlier"]
    assert rows(database, "SELECT count(*) FROM dispatcher_deliveries") == [(2,)]
    assert rows(database, "SELECT count(*) FROM dispatcher_payloads") == [(2,)]


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (("none", 1), "unknown_endpoint"),
        ({"endpoint_id": "shop", "payload": 2, "event_id": "earlier"}, "duplicate_event"),
        ({"endpoint_id": "shop", "payload": 2, "event_id": "one"}, "duplicate_event"),
        ({"endpoint_id": "free", "payload": 2, "order_key": "k"}, "order_key_refused"),
        ({"endpoint_id": "shop", "payload": 2, "actor": 5}, "invalid_argument"),
    ],
    ids=str,
)
def test_one_that_is_refused_refuses_all(live: Dispatcher, database: Path, wrong: Any, code: str) -> None:
    live.register("shop", "http://127.0.0.1:1/hook")
    live.register("free", "http://127.0.0.1:1/hook", order="none")
    live.enqueue("shop", 1, event_id="earlier")
    length = log_length(database)
    with pytest.raises(DispatcherError) as refused:
        live.enqueue_many([{"endpoint_id": "shop", "payload": 1, "event_id": "one"}, ("shop", 1), wrong])
    assert refused.value.code == code
    assert log_length(database) == length
    assert rows(database, "SELECT count(*) FROM dispatcher_payloads") == [(1,)]


def test_none_at_all_are_accepted_too(live: Dispatcher) -> None:
    assert live.enqueue_many([]) == []
