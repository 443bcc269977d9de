"""What is refused, by which code; and that nothing has changed then."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dispatcher import run
from dispatcher.delivery.authentication import BasicLogin, BearerToken, SecretHeader
from dispatcher.errors import Refused, UsageError, WrongKind
from dispatcher.live import Dispatcher
from tests.acceptance.lively import entries, eventually_is, log_length, rows
from tests.acceptance.receiver import Receiver

URL = "http://127.0.0.1:1/hook"
Call = Callable[[Dispatcher], object]


def deep(levels: int) -> list[Any]:
    nested: list[Any] = []
    for _ in range(levels):
        nested = [nested]
    return nested


def registering(endpoint_id: Any = "new", url: str = URL, **options: Any) -> Call:
    return lambda live: live.register(endpoint_id, url, **options)


def updating(**options: Any) -> Call:
    return lambda live: live.update("shop", **options)


def enqueueing(payload: Any = 1, endpoint_id: Any = "shop", **options: Any) -> Call:
    return lambda live: live.enqueue(endpoint_id, payload, **options)


def calling(name: str, *arguments: Any, **options: Any) -> Call:
    return lambda live: getattr(live, name)(*arguments, **options)


BAD_HEADERS = [
    ("X-A", "a\r\nX-Evil: 1"),
    ("X-B", "é"),
    ("", "a"),
    ("X A", "a"),
    ("X-A\n", "a"),
    ("webhook-id", "a"),
    ("Webhook-Signature", "a"),
    ("Content-Length", "1"),
    ("Host", "a"),
    ("transfer-encoding", "chunked"),
    ("Connection", "close"),
]
NO_JSON = (math.nan, {"x": [math.inf]}, object(), {"a": 1j}, "\ud800", {"a": "\ud800"}, deep(100_000))
REFUSED: list[tuple[str, Call]] = [
    *[("invalid_id", registering(bad)) for bad in ("", "a/b", "a.b", "é", "a\n", "a" * 129, 5, None)],
    *[("invalid_id", registering(tenant=bad)) for bad in ("", "a/b")],
    *[("invalid_id", enqueueing(event_id=bad)) for bad in ("", "a.b", "a/b", "x" * 129)],
    *[("invalid_url", registering(url=bad)) for bad in ("", "shop.example", "http://", "http://a b/", "http://\ud800/")],
    *[("unsupported_scheme", registering(url=bad)) for bad in ("javascript:alert(1)", "ftp://a.example/")],
    *[
        ("host_not_allowed", registering(url=bad))
        for bad in ("http://10.0.0.1/", "http://[::1]/", "http://2130706433/", "http://169.254.169.254/")
    ],
    ("host_not_allowed", updating(url="http://10.0.0.1/")),
    *[("invalid_headers", registering(headers=[bad])) for bad in BAD_HEADERS],
    *[("invalid_headers", updating(headers=[bad])) for bad in BAD_HEADERS[:2]],
    *[("invalid_headers", enqueueing(headers=[bad])) for bad in BAD_HEADERS],
    ("invalid_headers", enqueueing(content_type="text/plain\r\nX-Evil: 1")),
    ("invalid_headers", registering(auth=BearerToken(token="a\r\nX-Evil: 1"))),
    ("invalid_headers", registering(auth=BearerToken(token=""))),
    ("invalid_headers", updating(auth=BasicLogin(username="a:b", password="c"))),
    ("invalid_headers", updating(auth=SecretHeader(name="Host", value="a"))),
    *[
        ("invalid_secret", registering(secret=bad))
        for bad in ("", "whsec_", "whsec_!!!!", "whsec_AAAA", "whpk_AAAA", "whsk_AAAA")
    ],
    ("invalid_secret", lambda live: live.rotate_secret("shop", secret="whsec_")),
    ("payload_too_large", enqueueing(b"x" * (256 * 1024 + 1))),
    ("payload_too_large", enqueueing("é" * (128 * 1024 + 1))),
    *[
        ("invalid_payload", enqueueing(bad))
        for bad in NO_JSON
    ],
    *[("invalid_argument", registering(**bad)) for bad in (
        {"order": "fifo"}, {"method": "GET"}, {"concurrency": 0}, {"concurrency": "8"},
        {"concurrency": 2**70}, {"disable_when_gone": "yes"}, {"actor": 5}, {"auth": "token"},
    )],
    *[("invalid_argument", updating(**bad)) for bad in (
        {"order": "fifo"}, {"method": "GET"}, {"concurrency": -1}, {"actor": "\ud800"},
    )],
    ("invalid_argument", enqueueing(actor=5)),
    ("invalid_argument", registering(url=5)),  # type: ignore[arg-type]
    ("invalid_argument", updating(url=5)),
    *[("invalid_argument", calling("rotate_secret", "shop", keep_for=bad)) for bad in (-1, "1", True)],
    *[("invalid_argument", calling("revive", "shop", died_since=bad)) for bad in (-1, "1", 2**70)],
    ("invalid_argument", calling("revive", "shop", died_until=1.5)),
    ("invalid_argument", calling("revive", "shop", ["kept"], died_since=0)),
    ("invalid_argument", calling("enable", "shop", replay_dead="yes")),
    *[("invalid_argument", calling(*bad, actor=5)) for bad in (
        ("disable", "shop"), ("enable", "shop"), ("revive", "shop"), ("revive", "shop", ["kept"]),
        ("cancel", "shop", "kept"), ("rotate_secret", "shop"),
    )],
    ("invalid_argument", lambda live: live.disable("shop", 5)),  # type: ignore[arg-type]
    ("duplicate_endpoint", registering("shop", "http://127.0.0.1:1/other")),
    ("unknown_endpoint", enqueueing(endpoint_id="none")),
    ("unknown_endpoint", enqueueing(tenant="other")),
    ("unknown_endpoint", lambda live: live.enqueue_many([("shop", 1), ("none", 2)])),
    ("invalid_payload", lambda live: live.enqueue_many([("shop", 1), ("shop", math.nan)])),
    ("unknown_endpoint", lambda live: live.update("none", concurrency=2)),
    ("unknown_endpoint", lambda live: live.rotate_secret("none")),
    ("unknown_endpoint", lambda live: live.disable("none")),
    ("unknown_endpoint", lambda live: live.enable("none")),
    ("unknown_endpoint", lambda live: live.enable("none", replay_dead=True)),
    ("unknown_endpoint", lambda live: live.revive("none")),
    ("not_disabled", lambda live: live.enable("shop")),
    ("unknown_event", lambda live: live.revive("shop", ["none"])),
    ("not_dead", lambda live: live.revive("shop", ["kept"])),
    ("not_found", lambda live: live.status("shop", "none")),
    ("not_found", lambda live: live.history("shop", "none")),
    ("not_found", lambda live: live.dead_letters("none")),
]  # fmt: skip


def test_a_refused_call_has_a_code_and_changes_nothing(live: Dispatcher, database: Path) -> None:
    live.register("shop", URL)
    live.enqueue("shop", 1, event_id="kept")
    before = _everything(database)
    for code, call in REFUSED:
        with pytest.raises(UsageError) as refused:
            call(live)
        assert refused.value.code == code, refused.value
        assert str(refused.value)
        assert refused.value.remedy
    assert _everything(database) == before
    live.register("new", URL)


def _everything(database: Path) -> list[Any]:
    tables = rows(database, "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    return [rows(database, f"SELECT * FROM {table}") for (table,) in tables]


def test_registering_an_endpoint_again_keeps_what_is_pending(live: Dispatcher, receiver: Receiver) -> None:
    live.register("shop", receiver.url)
    live.enqueue("shop", 1, event_id="kept")
    with pytest.raises(Refused) as refused:
        live.register("shop", "http://127.0.0.1:1/other")
    assert refused.value.code == "duplicate_endpoint"
    with live.worker():
        assert receiver.next().event == "kept"


def test_a_repeat_is_answered_as_the_first_time_and_other_content_is_refused(
    live: Dispatcher, receiver: Receiver, database: Path
) -> None:
    live.register("shop", receiver.url)
    receiver.answer("dead", 400)
    with live.worker():
        for event_id, end in (("evt", "delivered"), ("dead", "dead"), ("held", "held")):
            if end == "held":
                live.disable("shop")
            for _ in range(2):
                assert live.enqueue("shop", {"a": 1}, event_id=event_id) == event_id
            eventually_is(live, event_id, end)
            length = log_length(database)
            assert live.enqueue("shop", {"a": 1}, event_id=event_id) == event_id
            for call in (
                enqueueing({"a": 2}, event_id=event_id),
                enqueueing({"a": 1}, event_id=event_id, headers=[("X", "1")]),
                enqueueing({"a": 1}, event_id=event_id, content_type="text/plain"),
            ):
                with pytest.raises(Refused) as refused:
                    call(live)
                assert refused.value.code == "duplicate_event"
            assert log_length(database) == length
            assert entries(live, event_id)[:1] == ["Enqueued"]
    assert receiver.events == ["evt", "dead"]


def test_tenants_and_endpoints_have_ids_of_their_own(live: Dispatcher, receiver: Receiver) -> None:
    for tenant in ("left", "right"):
        for endpoint_id in ("shop", "other"):
            live.register(endpoint_id, f"http://{receiver.address}/{tenant}/{endpoint_id}", tenant=tenant)
            live.enqueue(endpoint_id, tenant, event_id="evt", tenant=tenant)
    with live.worker():
        arrived = receiver.take(4)
    assert {arrival.path for arrival in arrived} == {
        f"/{t}/{e}" for t in ("left", "right") for e in ("shop", "other")
    }
    assert {arrival.event for arrival in arrived} == {"evt"}


def test_a_simulated_history_is_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "simulated.db"
    run([["register", 0, "a", "https://a.example"]], file)
    before = _everything(file)
    with pytest.raises(WrongKind):
        Dispatcher(file)
    assert _everything(file) == before


def test_a_closed_dispatcher_says_so(live: Dispatcher) -> None:
    from dispatcher.errors import StorageError

    live.register("shop", URL)
    live.enqueue("shop", 1, event_id="kept")
    live.close()
    calls: list[Call] = [
        enqueueing(),
        lambda live: live.status("shop", "kept"),
        lambda live: live.test("shop"),
    ]
    for call in calls:
        with pytest.raises(StorageError, match="closed"):
            call(live)
