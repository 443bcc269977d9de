"""What changes between the moment in which an event is encrypted and that in which the log is locked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import current_thread
from typing import Any

import pytest

from dispatcher.core.operations import Register, Update
from dispatcher.core.policy import PROMISED
from dispatcher.delivery.settings import encode
from dispatcher.live import Dispatcher, facade
from dispatcher.live.publishing import decode_publication, fan_out, prepare_for, publication
from dispatcher.log.commit import Commit
from dispatcher.log.vault import SealedPayload
from tests.acceptance.lively import rows
from tests.acceptance.receiver import Receiver
from tests.acceptance.test_live_publish import URL, at_each, deliveries, refusal


@contextmanager
def once_encrypted(monkeypatch: pytest.MonkeyPatch, change: Callable[[], object]) -> Iterator[None]:
    """Within the block, make a change after the payloads are encrypted and before the log is locked."""

    def prepare_and_change(*arguments: Any) -> Any:
        try:
            return prepare_for(*arguments)
        finally:
            change()

    with monkeypatch.context() as patch:
        patch.setattr(facade, "prepare_for", prepare_and_change)
        yield


def test_an_endpoint_that_is_registered_meanwhile_gets_it(
    live: Dispatcher, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change() -> None:
        live.register("new", f"http://{receiver.address}/new", body_format="standard")

    live.register("old", f"http://{receiver.address}/old")
    with once_encrypted(monkeypatch, change):
        assert live.publish("invoice.paid", 7).endpoints == ("old", "new")
    with live.worker():
        arrived = at_each(receiver, 2)
    assert arrived["old"].body == b"7"
    assert json.loads(arrived["new"].body)["data"] == 7


def test_one_that_does_not_want_it_any_more_does_not_and_one_that_does_now_gets_it(
    live: Dispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change() -> None:
        live.update("leaving", types=["user.*"])
        live.update("coming", types=["invoice.*"])

    live.register("leaving", URL)
    live.register("coming", URL, types=[])
    with once_encrypted(monkeypatch, change):
        assert live.publish("invoice.paid", 7).endpoints == ("coming",)


def test_it_is_sent_in_the_format_that_its_endpoint_wants_by_then(
    live: Dispatcher, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change() -> None:
        live.update("shop", body_format="given")

    live.register("shop", receiver.url, body_format="standard")
    with once_encrypted(monkeypatch, change), live.worker():
        live.publish("invoice.paid", 7)
        assert receiver.next().body == b"7"


@pytest.mark.parametrize(("before", "after"), [("given", "standard"), ("standard", "given")])
def test_a_payload_is_refused_by_the_format_that_is_wanted_by_then(
    live: Dispatcher, monkeypatch: pytest.MonkeyPatch, before: Any, after: Any
) -> None:
    live.register("other", URL)
    live.register("shop", URL, body_format=before)
    with once_encrypted(monkeypatch, lambda: live.update("shop", body_format=after)):
        if after == "standard":
            assert refusal(live, "invoice.paid", b"\xff", event_id="one") == "payload_not_json"
            assert live.publish("invoice.paid", 1, event_id="one").endpoints == ("other", "shop")
        else:
            assert live.publish("invoice.paid", b"\xff").endpoints == ("other", "shop")


@pytest.mark.parametrize(("before", "after"), [("strict", "none"), ("none", "strict")])
def test_the_order_is_that_of_then(
    live: Dispatcher, monkeypatch: pytest.MonkeyPatch, before: Any, after: Any, database: Any
) -> None:
    live.register("shop", URL, order=before)
    with once_encrypted(monkeypatch, lambda: live.update("shop", order=after)):
        live.publish("invoice.paid", 7, event_id="one", order_key="k")
    ((lane,),) = rows(database, "SELECT lane FROM dispatcher_deliveries")
    assert lane.startswith("own:" if after == "none" else "key:")


def test_what_is_published_meanwhile_under_its_id_is_compared_with_it(
    live: Dispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    live.register("shop", URL)
    with once_encrypted(monkeypatch, lambda: live.enqueue("shop", 7, event_id="one", type="invoice.paid")):
        assert live.publish("invoice.paid", 7, event_id="one").endpoints == ("shop",)
    with once_encrypted(monkeypatch, lambda: live.enqueue("shop", 8, event_id="two")):
        assert refusal(live, "invoice.paid", 7, event_id="two") == "duplicate_event"


def test_nothing_is_encrypted_under_the_lock_but_for_those_that_changed(
    live: Dispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed: list[tuple[str, bool]] = []
    seal = live._vault.seal_payload

    def seal_and_tell(delivery_id: str, *plain: bytes) -> SealedPayload:
        sealed.append((delivery_id, current_thread().name == "dispatcher-committer"))
        return seal(delivery_id, *plain)

    for endpoint_id in ("a", "b"):
        live.register(endpoint_id, URL)
    monkeypatch.setattr(live._vault, "seal_payload", seal_and_tell)
    with once_encrypted(monkeypatch, lambda: live.update("b", body_format="standard")):
        live.publish("invoice.paid", 1, event_id="one")
    early = [("default/a/one", False), ("default/b/one", False)]
    assert sealed == [*early, ("default/b/one", True)]


def test_within_one_transaction_it_goes_by_what_was_decided_before_it(
    live: Dispatcher, database: Any
) -> None:
    """Nothing is prepared either: all is encrypted under the lock, as for an event from elsewhere."""
    live.register("old", URL)
    prepared = publication(
        live._vault,
        "invoice.paid",
        7,
        at=1,
        source=None,
        tenant="default",
        event_id="one",
        content_type=None,
        headers=(),
        order_key=None,
        actor="clerk",
    )
    event = decode_publication(encode(prepared))
    assert event == prepared

    def work(commit: Commit) -> list[tuple[str, ...] | None]:
        answers = [fan_out(commit, live._vault, event, {}).endpoints]
        commit.apply(Register(endpoint_id="default/new", url="http://127.0.0.1", policy=PROMISED))
        answers.append(fan_out(commit, live._vault, event, {}).endpoints)
        commit.apply(Update(endpoint_id="default/old", types=()))
        answers.append(fan_out(commit, live._vault, event, {}).endpoints)
        return answers

    assert live._do(work) == [("old",), ("old", "new"), ("new",)]
    assert deliveries(database) == [("old/one", "invoice.paid"), ("new/one", "invoice.paid")]
    assert {entry["data"]["actor"] for entry in live.history("old", "one")} == {"clerk"}
