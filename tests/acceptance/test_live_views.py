"""What is told of events: why they wait, who wanted what, and how much of it a tenant may know."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dispatcher.delivery.transport import Answer, Request
from dispatcher.errors import AmbiguousEvent, NotFound
from dispatcher.live import Dispatcher
from dispatcher.log.open import Database
from tests.acceptance.lively import (
    OPEN,
    QUICK,
    MovedClock,
    Prompted,
    enqueue,
    eventually,
    eventually_is,
    rows,
    state,
)
from tests.acceptance.receiver import Receiver


def test_a_status_explains_itself(live: Dispatcher, receiver: Receiver, clock: MovedClock) -> None:
    live.register("shop", receiver.url, policy=QUICK)
    receiver.answer("one", 503)
    enqueue(live, "one", "two", "three")
    with live.worker():
        eventually_is(live, "one", "pending", attempts=1)
    one, two = live.status("shop", "one"), live.status("shop", "two")
    assert (one["attempts"], one["max_attempts"], one["last_status"]) == (1, 3, 503)
    assert one["next_attempt_at"] == clock.ms + 10_000
    assert (one["waits_behind"], one["blocks"]) == (None, 2)
    assert (two["waits_behind"], two["blocks"]) == ("one", 1)
    live.disable("shop", "too slow")
    assert live.status("shop", "one")["disabled"] == "too slow"
    live.cancel("shop", "one")
    assert (live.status("shop", "one")["blocks"], live.status("shop", "two")["waits_behind"]) == (0, None)


def test_a_status_tells_who_sends_it_and_since_when(database: Path, clock: MovedClock) -> None:
    transport = Prompted()
    with Dispatcher(database, clock=clock, open_networks=OPEN, transport=transport) as live:
        live.register("shop", "http://127.0.0.1:1/hook")
        with live.worker(name="worker-7"):
            enqueue(live, "one")
            assert transport.asked.wait(20)
            status = live.status("shop", "one")
            assert (status["in_flight_since"], status["worker"]) == (clock.ms, "worker-7")
            transport.may_answer.set()
            eventually_is(live, "one", "delivered")
        status = live.status("shop", "one")
        assert (status["in_flight_since"], status["worker"]) == (None, None)


def test_whoever_changes_something_can_be_named(live: Dispatcher, database: Path) -> None:
    live.register("shop", "http://127.0.0.1:1/hook", actor="1")
    live.update("shop", concurrency=2, actor="2")
    live.rotate_secret("shop", actor="3")
    live.enqueue("shop", 1, event_id="one", actor="4")
    live.enqueue_many([("shop", 1), {"endpoint_id": "shop", "payload": 2, "actor": "6"}], actor="5")
    live.disable("shop", actor="7")
    live.enable("shop", actor="8")
    live.cancel("shop", "one", actor="9")
    named = rows(database, "SELECT json_extract(data, '$.actor') FROM dispatcher_log ORDER BY position")
    assert [actor for (actor,) in named] == [None, *"123456789"]


def test_those_who_revive_can_be_named(live: Dispatcher, receiver: Receiver, database: Path) -> None:
    live.register("shop", receiver.url)
    receiver.answer("one", 404)
    enqueue(live, "one")
    with live.worker():
        calls: list[Callable[[], object]] = [
            lambda: live.revive("shop", ["one"], actor="0"),
            lambda: live.revive("shop", actor="1"),
            lambda: live.enable("shop", replay_dead=True, actor="2"),
        ]
        for call in calls:
            eventually_is(live, "one", "dead")
            if call is calls[-1]:
                live.disable("shop")
            call()
        eventually_is(live, "one", "dead")
    found = "SELECT json_extract(data, '$.actor') FROM dispatcher_log WHERE type = '{}' ORDER BY position"
    assert rows(database, found.format("Revived")) == [("0",), ("1",), ("2",)]
    assert rows(database, found.format("EndpointEnabled")) == [("2",)]


class Failing:
    """A transport that answers with an operator's code, by host."""

    async def send(self, request: Request) -> Answer:
        blocked = "inside" in request.url
        return Answer(status=0, error="address_blocked" if blocked else "dns_failed")

    async def close(self) -> None:
        """There is nothing to let go of."""


def test_a_blocked_name_and_one_that_does_not_resolve_look_the_same_to_the_tenant(
    database: Path, clock: MovedClock
) -> None:
    with Dispatcher(database, clock=clock, transport=Failing()) as live:
        views: list[Any] = []
        for n, host in enumerate(("inside.example", "nowhere.example")):
            live.register(f"shop{n}", f"http://{host}/", policy=QUICK)
            live.enqueue(f"shop{n}", 1, event_id="one")
        codes = []
        with live.worker():
            for attempts in (1, 2, 3):
                for endpoint_id in ("shop0", "shop1"):
                    _until_attempted(live, endpoint_id, attempts)
                clock.move(30)
        for n in range(2):
            endpoint_id = f"shop{n}"
            seen = [
                live.status(endpoint_id, "one", as_tenant=True),
                *live.history(endpoint_id, "one", as_tenant=True),
                *live.dead_letters(endpoint_id, as_tenant=True),
                live.test(endpoint_id, as_tenant=True),
            ]
            codes.append(live.status(endpoint_id, "one")["last_error"])
            views.append([_timeless(one) for one in seen])
            assert "unreachable" in repr(seen)
            assert "address_blocked" not in repr(seen)
            assert "dns_failed" not in repr(seen)
        assert codes == ["address_blocked", "dns_failed"]
        assert views[0] == views[1]


def _until_attempted(live: Dispatcher, endpoint_id: str, attempts: int) -> None:
    eventually(lambda: live.status(endpoint_id, "one")["attempts"] == attempts)


def _timeless(shown: dict[str, Any]) -> dict[str, Any]:
    """Without ids and times, which differ from endpoint to endpoint."""
    names = ("endpoint_id", "ts", "next_attempt_at", "died_at", "duration_ms")
    kept = {name: value for name, value in shown.items() if name not in names}
    if "data" in kept:
        kept["data"] = {name: value for name, value in kept["data"].items() if name != "retry_at"}
    return kept


def test_a_tenant_sees_nothing_that_depends_on_others_or_on_how_it_is_run(
    live: Dispatcher, receiver: Receiver
) -> None:
    live.register("shop", receiver.url, actor="operator")
    receiver.answer("one", 404)
    live.enqueue("shop", 1, event_id="one", actor="operator")
    with live.worker(name="worker-7"):
        eventually_is(live, "one", "dead")
    told = [
        live.status("shop", "one", as_tenant=True),
        live.history("shop", "one", as_tenant=True),
        live.dead_letters("shop", as_tenant=True),
    ]
    for hidden in ("worker", "position", "hash", "operator", "duration"):
        assert hidden not in repr(told)
    assert [entry["data"].get("status") for entry in live.history("shop", "one", as_tenant=True)] == [
        None,
        404,
    ]


def test_an_event_is_found_at_its_only_endpoint(live: Dispatcher) -> None:
    for tenant, endpoint_id in (
        ("default", "shop"),
        ("default", "mail"),
        ("other", "shop"),
        ("other", "app"),
    ):
        live.register(endpoint_id, "http://127.0.0.1:1/hook", tenant=tenant)
    live.enqueue("mail", 1, event_id="one")
    live.enqueue("app", 1, event_id="one", tenant="other")
    for endpoint_id in ("shop", "mail"):
        live.enqueue(endpoint_id, 1, event_id="two")
    assert live.endpoint_of("one") == "mail"
    assert live.endpoint_of("one", tenant="other") == "app"
    with pytest.raises(AmbiguousEvent, match="mail, shop"):
        live.endpoint_of("two")
    for event_id, tenant in (("three", "default"), ("two", "other"), ("one", "third")):
        with pytest.raises(NotFound):
            live.endpoint_of(event_id, tenant=tenant)


def test_reads_share_connections_that_stay_open(live: Dispatcher, monkeypatch: pytest.MonkeyPatch) -> None:
    live.register("shop", "http://127.0.0.1:1/hook")
    enqueue(live, "one")
    state(live, "one")
    connected: list[None] = []
    connect: Any = Database._connect

    def counted(database: Database) -> Any:
        connected.append(None)
        return connect(database)

    monkeypatch.setattr(Database, "_connect", counted)
    for _ in range(20):
        state(live, "one")
        live.history("shop", "one")
        live.dead_letters("shop")
    assert connected == []
