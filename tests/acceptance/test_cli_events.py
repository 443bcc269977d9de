"""`enqueue`, `revive`, `cancel`, and what `status`, `history` and `dead-letters` say of live events."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

import pytest

from dispatcher.live import Dispatcher
from tests.acceptance.cli import dispatcher
from tests.acceptance.conftest import Command
from tests.acceptance.lively import (
    OPEN,
    QUICK,
    MovedClock,
    Prompted,
    bury,
    enqueue,
    eventually_is,
    log_length,
    rows,
    state,
)
from tests.acceptance.receiver import Receiver
from tests.acceptance.test_live_revive import revived

URL = "http://127.0.0.1:1/hook"
LOCAL_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d"


def test_a_payload_is_taken_byte_for_byte(
    command: Command, live: Dispatcher, receiver: Receiver, tmp_path: Path
) -> None:
    live.register("shop", receiver.url)
    raw = b'\xff\x00{"n": 1.0}\r\n'
    (tmp_path / "payload").write_bytes(raw)
    given = [
        command("enqueue", "shop", '{"n":"é 😱"}'),
        command("enqueue", "shop", "--file", "payload"),
        command("enqueue", "shop", "-", stdin=raw),
        command("enqueue", "shop", "@payload"),
        command("enqueue", "shop", ""),
    ]
    assert [(ran.code, ran.err) for ran in given] == [(0, "")] * 5
    with live.worker():
        arrived = receiver.take(5)
    assert [arrival.event for arrival in arrived] == [ran.out.strip() for ran in given]
    assert [arrival.body for arrival in arrived] == ['{"n":"é 😱"}'.encode(), raw, raw, b"@payload", b""]


def test_an_event_may_have_an_id_headers_and_an_order_key(
    command: Command, live: Dispatcher, receiver: Receiver, database: Path
) -> None:
    live.register("shop", receiver.url)
    event = ["enqueue", "shop", "1", "--event-id", "one", "--content-type", "text/plain"]
    event += ["--header", "X-A: b", "--order-key", "customer-7", "--actor", "me"]
    for _ in range(2):
        ran = command(*event, "--json")
        assert ran.json == {"tenant": "default", "endpoint_id": "shop", "event_id": "one"}
    other = command("enqueue", "shop", "2", "--event-id", "one", "--json")
    assert (other.code, other.error["code"]) == (2, "duplicate_event")
    with live.worker():
        arrival = receiver.next()
    assert (arrival.event, arrival.headers["content-type"], arrival.headers["x-a"]) == (
        "one",
        "text/plain",
        "b",
    )
    (lane,) = rows(database, "SELECT lane FROM dispatcher_deliveries")
    assert lane[0].startswith("key:")
    assert "customer-7" not in repr(lane)
    assert "me" in repr(rows(database, "SELECT data FROM dispatcher_log WHERE type = 'Enqueued'"))


@pytest.mark.parametrize(
    ("arguments", "code", "exit_code"),
    [
        (["enqueue", "none", "1"], "unknown_endpoint", 3),
        (["enqueue", "shop"], "usage", 2),
        (["enqueue", "shop", "1", "--file", "x"], "usage", 2),
        (["enqueue", "shop", "--file", "none"], "usage", 2),
        (["enqueue", "shop", "1", "--event-id", "a.b"], "invalid_id", 2),
        (["enqueue", "shop", "1", "--header", "Host: x"], "invalid_headers", 2),
        (["revive", "shop"], "usage", 2),
        (["revive", "shop", "one", "--all"], "usage", 2),
        (["revive", "shop", "--all", "--since", "2h"], "usage", 2),
        (["revive", "shop", "--since", "yesterday"], "usage", 2),
        (["revive", "shop", "one"], "not_dead", 2),
        (["revive", "shop", "none"], "unknown_event", 3),
        (["revive", "none", "--all"], "unknown_endpoint", 3),
        (["cancel", "none"], "not_found", 3),
        (["cancel", "none", "--endpoint", "shop"], "unknown_event", 3),
        (["cancel", "one", "--tenant", "other"], "not_found", 3),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_is_refused_has_a_code_and_changes_nothing(
    command: Command, live: Dispatcher, database: Path, arguments: list[str], code: str, exit_code: int
) -> None:
    live.register("shop", URL)
    enqueue(live, "one")
    length = log_length(database)
    ran = command(*arguments, "--json")
    assert (ran.code, ran.error["code"]) == (exit_code, code)
    assert log_length(database) == length


def test_a_payload_that_is_too_long_is_refused_however_long_it_is(command: Command, live: Dispatcher) -> None:
    live.register("shop", URL)
    for length in (256 * 1024 + 1, 5 * 1024 * 1024):
        ran = command("enqueue", "shop", "-", "--json", stdin=b"x" * length)
        assert (ran.code, ran.error["code"]) == (2, "payload_too_large")


def test_a_status_explains_itself_in_words(
    command: Command, live: Dispatcher, receiver: Receiver, clock: MovedClock
) -> None:
    live.register("shop", receiver.url, policy=QUICK)
    receiver.answer("one", 503)
    clock.move(3600)
    enqueue(live, "one", "two", "three")
    with live.worker():
        eventually_is(live, "one", "pending", attempts=1)
    one = dict(command("status", "one").lines)
    due = one.pop("next attempt")
    assert one == {
        "event": "one",
        "endpoint": "shop",
        "state": "pending",
        "attempts": "1 of 3",
        "last answer": "503",
        "blocks": "2 events behind it",
    }
    assert re.fullmatch(rf"in 1h\d*[ms]? \(at {LOCAL_TIME}\)|in 59m\d+s \(at {LOCAL_TIME}\)", due), due
    at = datetime.fromisoformat(due.partition("at ")[2].rstrip(")"))
    assert int(at.timestamp()) == (clock.ms + 10_000) // 1000
    two = dict(command("status", "two").lines)
    assert (two["waits behind"], two["blocks"]) == ("one", "1 event behind it")
    assert two["next attempt"].startswith("after one")
    as_json = command("status", "one", "--json").json
    assert (as_json["tenant"], as_json["blocks"], as_json["next_attempt_at"]) == (
        "default",
        2,
        clock.ms + 10_000,
    )


def test_a_status_tells_of_a_request_under_way(command: Command, database: Path, clock: MovedClock) -> None:
    transport = Prompted()
    with Dispatcher(database, clock=clock, open_networks=OPEN, transport=transport) as live:
        live.register("shop", URL)
        with live.worker(name="worker-7"):
            enqueue(live, "one")
            assert transport.asked.wait(20)
            told = dict(command("status", "one").lines)["in flight"]
            assert re.fullmatch(r"attempt 1, for \d+s, by worker-7", told), told
            refused = command("cancel", "one", "--json")
            assert (refused.code, refused.error["code"]) == (2, "in_flight")
            as_tenant = dict(command("status", "one", "--as-tenant").lines)["in flight"]
            assert "worker-7" not in as_tenant
            transport.may_answer.set()
            eventually_is(live, "one", "delivered")


def test_what_happened_is_told_in_local_time_and_without_the_tenant(
    command: Command, live: Dispatcher, receiver: Receiver
) -> None:
    live.register("shop", receiver.url, policy=QUICK)
    receiver.answer("one", 503)
    enqueue(live, "one")
    with live.worker():
        eventually_is(live, "one", "pending", attempts=1)
    first, second = command("history", "one").lines
    assert first[2] == "enqueued for shop"
    assert re.fullmatch(LOCAL_TIME, first[1])
    assert re.fullmatch(rf"attempt 1: 503, retry at {LOCAL_TIME}", second[2])
    entries = command("history", "one", "--json").json
    assert [(one["endpoint_id"], one["delivery_id"]) for one in entries] == [("shop", "one")] * 2
    shown = command("history", "one", "--as-tenant").lines
    assert [line[1] for line in shown] == [first[2], second[2]]
    assert "hash" not in command("history", "one", "--as-tenant", "--json").out


def test_an_operator_sees_the_code_and_a_tenant_a_neutral_one(
    command: Command, database: Path, clock: MovedClock
) -> None:
    with Dispatcher(database, clock=clock) as live:
        live.register("shop", "http://localhost:1/hook", policy=QUICK)
        enqueue(live, "one")
        with live.worker():
            eventually_is(live, "one", "pending", attempts=1)
    operators = [command("status", "one").out, command("history", "one").out]
    tenants = [command("status", "one", "--as-tenant").out, command("history", "one", "--as-tenant").out]
    assert ["(address_blocked)" in told for told in (*operators, *tenants)] == [True, True, False, False]
    assert ["(unreachable)" in told for told in (*operators, *tenants)] == [False, False, True, True]


def test_an_event_is_found_by_its_id_unless_several_endpoints_have_one(
    command: Command, live: Dispatcher
) -> None:
    for endpoint_id in ("shop", "mail"):
        live.register(endpoint_id, URL)
        enqueue(live, "both", endpoint_id=endpoint_id)
    enqueue(live, "one", endpoint_id="mail")
    assert ["endpoint", "mail"] in command("status", "one").lines
    for question in ("status", "history", "cancel"):
        ran = command(question, "both")
        assert (ran.code, ran.out) == (2, "")
        message, remedy = ran.err.splitlines()
        assert message == "error: there is an event 'both' at several endpoints: mail, shop"
        assert "--endpoint" in remedy
    assert command("cancel", "both", "--endpoint", "mail") == (0, "both is cancelled\n", "")
    assert [state(live, "both", endpoint_id) for endpoint_id in ("shop", "mail")] == ["pending", "cancelled"]
    cancelled = command("cancel", "one", "--json").json
    assert cancelled == {
        "tenant": "default",
        "endpoint_id": "mail",
        "event_id": "one",
        "state": "cancelled",
    }
    assert command("status", "none").code == command("status", "one", "--endpoint", "shop").code == 3


def test_dead_events_come_back_by_name_by_time_or_all(
    command: Command, live: Dispatcher, clock: MovedClock, database: Path
) -> None:
    clock.move(-7200)
    live.register("shop", URL)
    enqueue(live, "a", "b", "c", "d")
    ages = []
    for event_id in "abcd":
        clock.move(1800)
        bury(live, event_id)
        ages.append(clock.ms)
    listed = command("dead-letters", "shop")
    assert [line[0] for line in listed.lines] == ["a", "b", "c", "d"]
    assert all(re.fullmatch(LOCAL_TIME, line[-1]) for line in listed.lines)
    assert [one["died_at"] for one in command("dead-letters", "--json").json] == ages
    assert command("revive", "shop", "b", "--actor", "me") == (0, "revived\t1\n", "")
    since, until = (datetime.fromtimestamp(ages[n] / 1000).isoformat() for n in (2, 3))
    assert command("revive", "shop", "--since", since, "--until", until).out == "revived\t1\n"
    assert command("revive", "shop", "--until", "90d").out == "revived\t0\n"
    assert command("revive", "shop", "--all", "--json").json["revived"] == 2
    assert revived(database) == ["b", "c", "a", "d"]
    assert command("dead-letters").out == ""


def test_simulated_events_may_be_named_with_their_endpoint(example: Path) -> None:
    plain = dispatcher("status", "pick-201", at=example)
    assert dispatcher("status", "pick-201", "--endpoint", "warehouse", at=example) == plain
    for question in ("status", "history"):
        assert dispatcher(question, "pick-201", "--endpoint", "storefront", at=example).code == 3
        assert dispatcher(question, "pick-201", "--tenant", "acme", at=example).code == 2
