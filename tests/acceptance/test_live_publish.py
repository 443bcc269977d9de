"""One event for every endpoint that wants its type."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dispatcher import verify_webhook
from dispatcher.errors import Refused
from dispatcher.live import Dispatcher
from tests.acceptance.lively import (
    OPEN,
    QUICK,
    MovedClock,
    entries,
    eventually,
    log_length,
    rows,
    state,
)
from tests.acceptance.receiver import Arrival, Receiver
from tests.acceptance.test_live_secrets import contents, everything

URL = "http://127.0.0.1:1/hook"


def at_each(receiver: Receiver, count: int) -> dict[str, Arrival]:
    """The next arrivals, by the last part of their paths."""
    return {arrival.path.rpartition("/")[2]: arrival for arrival in receiver.take(count)}


def deliveries(database: Path) -> list[tuple[Any, ...]]:
    found = rows(database, "SELECT delivery_id, event_type FROM dispatcher_deliveries ORDER BY position")
    return [(delivery_id.partition("/")[2], event_type) for delivery_id, event_type in found]


def refusal(live: Dispatcher, *arguments: Any, **options: Any) -> str:
    with pytest.raises(Refused) as refused:
        live.publish(*arguments, **options)
    return refused.value.code


def test_each_endpoint_that_wants_its_type_gets_it_and_no_other(
    live: Dispatcher, receiver: Receiver, database: Path
) -> None:
    wanted: dict[str, Any] = {
        "all": None,
        "star": ["*"],
        "beginning": ["user.*", "invoice.*"],
        "exact": ("invoice.paid",),
        "none": [],
        "others": ["invoice", "invoice.paid.late", "user.*"],
    }
    for endpoint_id, types in wanted.items():
        live.register(endpoint_id, f"http://{receiver.address}/{endpoint_id}", types=types)
    published = live.publish("invoice.paid", {"n": 1})
    assert published.endpoints is not None
    wanting = published.endpoints
    assert wanting == ("all", "star", "beginning", "exact")
    assert deliveries(database) == [(f"{e}/{published.event_id}", "invoice.paid") for e in wanting]
    with live.worker():
        arrived = at_each(receiver, 4)
        eventually(lambda: all(state(live, published.event_id, e) == "delivered" for e in wanting))
    assert set(arrived) == set(wanting)
    assert {(arrival.event, arrival.body) for arrival in arrived.values()} == {
        (published.event_id, b'{"n":1}')
    }


def test_each_gets_it_in_its_own_format_signed_as_it_is_sent(
    live: Dispatcher, receiver: Receiver, clock: MovedClock
) -> None:
    secrets = {
        body_format: live.register(
            body_format, f"http://{receiver.address}/{body_format}", body_format=body_format
        )
        for body_format in ("given", "standard", "cloudevents")
    }
    raw = b'{"id":616581622363398142, "f":1.0}'
    published_at = clock.ms
    event_id, _ = live.publish("invoice.paid", raw, headers=[("X-A", "b")])
    clock.move(1)
    with live.worker():
        arrived = at_each(receiver, 3)
    for body_format, arrival in arrived.items():
        verify_webhook(arrival.body, arrival.headers, secrets[body_format], now=clock.ms // 1000)
        assert arrival.headers["x-a"] == "b"
    assert (arrived["given"].body, arrived["given"].headers["content-type"]) == (raw, "application/json")
    time = json.loads(arrived["standard"].body)["timestamp"]
    assert time.endswith(f".{published_at % 1000:03}Z")
    head = f'{{"type":"invoice.paid","timestamp":"{time}","data":'.encode()
    assert arrived["standard"].body == head + raw + b"}"
    assert arrived["standard"].headers["content-type"] == "application/json"
    cloud_event = json.loads(arrived["cloudevents"].body)
    assert arrived["cloudevents"].body.endswith(b'"data":' + raw + b"}")
    assert arrived["cloudevents"].headers["content-type"] == "application/cloudevents+json"
    attributes = [cloud_event[name] for name in ("specversion", "id", "source", "type", "time")]
    assert attributes == ["1.0", event_id, "/dispatcher/default", "invoice.paid", time]


def test_a_retry_sends_the_same_bytes_whatever_the_endpoint_wants_by_then(
    live: Dispatcher, receiver: Receiver, clock: MovedClock
) -> None:
    live.register("shop", receiver.url, policy=QUICK, body_format="cloudevents")
    receiver.answer("one", 503, 200)
    live.publish("invoice.paid", 1, event_id="one")
    with live.worker():
        first = receiver.next()
        eventually(lambda: live.status("shop", "one")["attempts"] == 1)
        live.update("shop", body_format="given", types=[])
        clock.move(10)
        again = receiver.next()
    assert again.body == first.body
    assert again.headers["content-type"] == first.headers["content-type"] == "application/cloudevents+json"


@pytest.mark.parametrize(("given", "of_environment", "told"), [("/a", "/b", "/a"), (None, "/b", "/b")])
def test_a_cloud_event_tells_the_source_that_was_set(
    database: Path,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    given: str | None,
    of_environment: str,
    told: str,
) -> None:
    monkeypatch.setenv("DISPATCHER_SOURCE", of_environment)
    with Dispatcher(database, open_networks=OPEN, source=given) as live, live.worker():
        live.register("shop", receiver.url, body_format="cloudevents")
        live.publish("invoice.paid", 1)
        assert json.loads(receiver.next().body)["source"] == told


def test_a_source_that_is_none_is_refused_before_a_file_is_made(database: Path) -> None:
    with pytest.raises(Refused) as refused:
        Dispatcher(database, source="a b")
    assert refused.value.code == "invalid_source"
    assert not database.exists()
    Dispatcher(database).close()


def test_a_tenants_events_are_its_own(live: Dispatcher, database: Path) -> None:
    """Also beside tenants whose ids begin, or nearly begin, with its own."""
    for tenant in ("a", "a-", "a0", "ab", "b"):
        live.register(f"of-{tenant}", URL, tenant=tenant)
    assert live.publish("invoice.paid", 1, tenant="a").endpoints == ("of-a",)
    assert live.publish("invoice.paid", 1, tenant="none").endpoints == ()
    assert len(deliveries(database)) == 1


def test_what_nobody_wants_leaves_no_trace(live: Dispatcher, database: Path) -> None:
    live.register("shop", URL, types=["user.*"])
    length = log_length(database)
    assert live.publish("invoice.paid", 1, event_id="one") == ("one", ())
    assert log_length(database) == length
    assert rows(database, "SELECT * FROM dispatcher_payloads") == []
    live.update("shop", types=None)
    assert live.publish("invoice.paid", "other", event_id="one") == ("one", ("shop",))


def test_a_disabled_endpoint_holds_it(live: Dispatcher, receiver: Receiver) -> None:
    live.register("shop", receiver.url)
    live.disable("shop")
    assert live.publish("invoice.paid", 1, event_id="one").endpoints == ("shop",)
    assert state(live, "one") == "held"
    with live.worker():
        live.enable("shop")
        assert receiver.next().event == "one"


def test_all_are_accepted_in_one_transaction(live: Dispatcher) -> None:
    for n in range(50):
        live.register(f"hook-{n}", URL)
    positions: list[int] = []
    live._committer.listeners.append(positions.append)
    assert len(live.publish("invoice.paid", 1).endpoints or ()) == 50
    assert positions == [101]


def test_a_repeat_is_answered_the_same_and_changes_nothing(
    live: Dispatcher, clock: MovedClock, database: Path
) -> None:
    """Whatever the endpoints' formats are by then, and whatever time it is."""
    for endpoint_id, body_format in (("a", "given"), ("b", "standard"), ("c", "cloudevents")):
        live.register(endpoint_id, URL, body_format=body_format)  # type: ignore[arg-type]
    first = live.publish("invoice.paid", {"n": 1}, event_id="one", headers=[("X-A", "b")])
    live.update("a", body_format="cloudevents")
    live.update("b", body_format="given")
    clock.move(100)
    length = log_length(database)
    assert live.publish("invoice.paid", b'{"n":1}', event_id="one", headers=[("X-A", "b")]) == first
    assert log_length(database) == length


@pytest.mark.parametrize(
    "other",
    [
        ("invoice.paid", 2, {}),
        ("invoice.late", 1, {}),
        ("invoice.paid", 1, {"headers": [("X-A", "b")]}),
        ("invoice.paid", 1, {"content_type": "text/plain"}),
    ],
)
def test_other_content_under_its_id_is_refused_and_changes_nothing_anywhere(
    live: Dispatcher, database: Path, other: tuple[str, Any, dict[str, Any]]
) -> None:
    live.register("shop", URL)
    live.publish("invoice.paid", 1, event_id="one")
    live.register("first", URL)
    live.register("later", URL)
    before = contents(database)
    event_type, payload, options = other
    assert refusal(live, event_type, payload, event_id="one", **options) == "duplicate_event"
    assert contents(database) == before
    assert live.publish("invoice.paid", 1, event_id="one").endpoints == ("shop", "first", "later")


def test_a_repeat_comes_to_endpoints_that_want_it_since(live: Dispatcher, receiver: Receiver) -> None:
    live.register("early", f"http://{receiver.address}/early")
    live.register("gone", f"http://{receiver.address}/gone")
    live.publish("invoice.paid", 1, event_id="one")
    live.register("late", f"http://{receiver.address}/late", body_format="standard")
    live.update("gone", types=["user.*"])
    assert live.publish("invoice.paid", 1, event_id="one").endpoints == ("early", "late")
    with live.worker():
        arrived = at_each(receiver, 3)
        eventually(lambda: state(live, "one", "late") == "delivered")
    receiver.assert_quiet()
    assert arrived.keys() == {"early", "gone", "late"}
    assert entries(live, "one", "gone") == ["Enqueued", "AttemptRecorded"]


def test_what_was_erased_at_one_endpoint_is_not_published_again(live: Dispatcher, database: Path) -> None:
    for endpoint_id in ("a", "b"):
        live.register(endpoint_id, URL)
    live.publish("invoice.paid", 1, event_id="one")
    live.erase("b", ["one"])
    length = log_length(database)
    assert refusal(live, "invoice.paid", 1, event_id="one") == "duplicate_event"
    assert log_length(database) == length


def test_one_id_published_by_many_at_once_is_one_event(live: Dispatcher, database: Path) -> None:
    for endpoint_id in ("a", "b", "c"):
        live.register(endpoint_id, URL)

    def publish(n: int) -> object:
        try:
            return live.publish("invoice.paid", n % 2, event_id="one").endpoints
        except Refused as refused:
            return refused.code

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(publish, range(24)))
    assert sorted(map(repr, answers)) == ["'duplicate_event'"] * 12 + ["('a', 'b', 'c')"] * 12
    assert len(deliveries(database)) == 3


def test_the_order_key_is_left_out_where_no_order_is_kept(live: Dispatcher, database: Path) -> None:
    live.register("ordered", URL)
    live.register("free", URL, order="none")
    for event_id in ("one", "two"):
        assert live.publish("invoice.paid", 1, event_id=event_id, order_key="customer-7").endpoints == (
            "ordered",
            "free",
        )
    found = rows(database, "SELECT endpoint_id, lane FROM dispatcher_deliveries ORDER BY position")
    lanes = [(endpoint_id.partition("/")[2], lane) for endpoint_id, lane in found]
    assert lanes[1::2] == [("free", "own:default/free/one"), ("free", "own:default/free/two")]
    assert lanes[0] == lanes[2]
    assert lanes[0][1].startswith("key:")
    assert b"customer-7" not in everything(database)


def test_a_payload_that_is_no_json_is_refused_for_all_if_one_wants_the_standard_envelope(
    live: Dispatcher, receiver: Receiver, database: Path
) -> None:
    live.register("given", f"http://{receiver.address}/given")
    live.register("cloud", f"http://{receiver.address}/cloud", body_format="cloudevents")
    live.register("standard", URL, body_format="standard", types=["invoice.*"])
    length = log_length(database)
    assert refusal(live, "invoice.paid", b"\xff", event_id="one") == "payload_not_json"
    assert log_length(database) == length
    assert live.publish("user.created", b"\xff", content_type="image/png").endpoints == ("given", "cloud")
    with live.worker():
        arrived = at_each(receiver, 2)
    assert arrived["given"].body == b"\xff"
    assert json.loads(arrived["cloud"].body)["data_base64"] == "/w=="
    assert json.loads(arrived["cloud"].body)["datacontenttype"] == "image/png"


def test_a_repeat_that_its_endpoint_could_not_take_any_more_is_still_one(live: Dispatcher) -> None:
    live.register("shop", URL)
    first = live.publish("invoice.paid", b"\xff", event_id="one")
    live.update("shop", body_format="standard")
    assert live.publish("invoice.paid", b"\xff", event_id="one") == first


@pytest.mark.parametrize(
    ("arguments", "options", "code"),
    [
        (("", 1), {}, "invalid_event_type"),
        (("invoice.*", 1), {}, "invalid_event_type"),
        ((None, 1), {}, "invalid_event_type"),
        (("invoice.paid", 1), {"event_id": "a.b"}, "invalid_id"),
        (("invoice.paid", 1), {"tenant": "a/b"}, "invalid_id"),
        (("invoice.paid", 1), {"actor": 5}, "invalid_argument"),
        (("invoice.paid", float("nan")), {}, "invalid_payload"),
        (("invoice.paid", {1, object()}), {}, "invalid_payload"),
        (("invoice.paid", b"x" * (256 * 1024 + 1)), {}, "payload_too_large"),
    ],
    ids=str,
)
def test_what_cannot_be_published_is_refused_whether_anybody_wants_it_or_not(
    live: Dispatcher, arguments: tuple[Any, Any], options: dict[str, Any], code: str
) -> None:
    assert refusal(live, *arguments, **options) == code
    live.register("shop", URL)
    assert refusal(live, *arguments, **options) == code


@pytest.mark.parametrize(
    "types", ["invoice.*", ["a..b"], [""], ["a*"], [1], [None], 5, {"a": 1}, ["a"] * 101], ids=repr
)
def test_patterns_that_are_none_are_refused(live: Dispatcher, database: Path, types: Any) -> None:
    live.register("shop", URL, types=["a"])
    length = log_length(database)
    for attempt in (
        lambda: live.register("other", URL, types=types),
        lambda: live.update("shop", types=types),
    ):
        with pytest.raises(Refused) as refused:
            attempt()
        assert refused.value.code == "invalid_types"
    assert log_length(database) == length


def test_a_format_that_is_none_is_refused(live: Dispatcher) -> None:
    live.register("shop", URL)
    wrong: Any = "xml"
    for attempt in (
        lambda: live.register("other", URL, body_format=wrong),
        lambda: live.update("shop", body_format=wrong),
    ):
        with pytest.raises(Refused) as refused:
            attempt()
        assert refused.value.code == "invalid_argument"


def test_the_type_of_an_enqueued_event_is_kept_and_its_payload_sent_as_it_is_given(
    live: Dispatcher, receiver: Receiver, database: Path
) -> None:
    live.register("shop", receiver.url, body_format="standard", types=["user.*"])
    live.enqueue("shop", 1, event_id="one", type="invoice.paid")
    live.enqueue_many([{"endpoint_id": "shop", "payload": 2, "event_id": "two", "type": "invoice.late"}])
    assert deliveries(database) == [("shop/one", "invoice.paid"), ("shop/two", "invoice.late")]
    with pytest.raises(Refused) as refused:
        live.enqueue("shop", 1, event_id="one")
    assert refused.value.code == "duplicate_event"
    with pytest.raises(Refused) as refused:
        live.enqueue("shop", 1, type="invoice.*")
    assert refused.value.code == "invalid_event_type"
    with live.worker():
        assert [arrival.body for arrival in receiver.take(2)] == [b"1", b"2"]


def test_status_and_history_tell_the_type(live: Dispatcher) -> None:
    live.register("shop", URL)
    live.publish("invoice.paid", 1, event_id="one")
    live.enqueue("shop", 1, event_id="two")
    for as_tenant in (False, True):
        assert live.status("shop", "one", as_tenant=as_tenant)["event_type"] == "invoice.paid"
        assert live.status("shop", "two", as_tenant=as_tenant)["event_type"] is None
        (entry,) = live.history("shop", "one", as_tenant=as_tenant)
        assert entry["data"]["event_type"] == "invoice.paid"


def test_coroutines_publish(live: Dispatcher) -> None:
    live.register("shop", URL)
    published = asyncio.run(live.apublish("invoice.paid", 1, event_id="one"))
    assert published == ("one", ("shop",))


def test_neither_payload_nor_what_it_is_wrapped_in_is_readable_in_the_database(
    live: Dispatcher, database: Path
) -> None:
    for endpoint_id, body_format in (("a", "given"), ("b", "standard"), ("c", "cloudevents")):
        live.register(endpoint_id, URL, body_format=body_format)  # type: ignore[arg-type]
    live.publish("invoice.paid", {"secret": "PII-7f3a"}, headers=[("X-Token", "HEAD-9c")])
    kept = everything(database)
    assert b"invoice.paid" in kept
    for canary in (b"PII-7f3a", b"HEAD-9c", b"specversion", b"timestamp"):
        assert canary not in kept
