"""Payloads that are erased: by an endpoint's setting, by name, by age, of a whole tenant."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dispatcher.core.policy import RetryPolicy
from dispatcher.errors import DispatcherError, Refused
from dispatcher.live import Dispatcher
from dispatcher.live.erasure import Erased
from dispatcher.log.rebuild import rebuild
from dispatcher.log.seal import Keyring
from dispatcher.log.vault import ERASED
from tests.acceptance.conftest import Opened
from tests.acceptance.elsewhere import worker_elsewhere
from tests.acceptance.lively import (
    LEASE_SECONDS,
    OPEN,
    QUICK,
    MovedClock,
    Prompted,
    bury,
    enqueue,
    entries,
    eventually_is,
    log_length,
    rows,
    state,
)
from tests.acceptance.receiver import Receiver, Reply
from tests.acceptance.test_live_revive import transactions
from tests.acceptance.test_live_secrets import everything

URL = "http://127.0.0.1:1/hook"
ONCE = RetryPolicy(max_attempts=1, waits=(), retryable=((0, 0),))


@pytest.fixture(params=[False, True], ids=["no master key", "a master key"])
def protected(request: pytest.FixtureRequest, database: Path, clock: MovedClock) -> Iterator[Dispatcher]:
    keyring = Keyring([os.urandom(32)] if request.param else [])
    with Dispatcher(database, keyring=keyring, clock=clock, open_networks=OPEN) as live:
        yield live


def keys(database: Path) -> dict[str, bytes]:
    """The stored keys by event."""
    found = rows(
        database,
        "SELECT d.delivery_id, k.key FROM dispatcher_payload_keys AS k"
        " JOIN dispatcher_deliveries AS d ON d.position = k.n ORDER BY k.n",
    )
    return {delivery_id.rpartition("/")[2]: key for delivery_id, key in found}


def erased(database: Path) -> list[str]:
    """The events whose keys are zeros; the log says so of them, and of no others."""
    zeros = [event_id for event_id, key in keys(database).items() if key == ERASED]
    said = rows(database, "SELECT delivery_id FROM dispatcher_log WHERE type = 'PayloadErased'")
    assert sorted(delivery_id.rpartition("/")[2] for (delivery_id,) in said) == sorted(zeros)
    return zeros


@pytest.mark.parametrize(
    ("erase", "gone"),
    [("never", []), ("on_delivery", ["good"]), ("on_final", ["good", "bad"])],
)
def test_an_endpoint_erases_with_the_outcome_and_keeps_nothing_of_the_answer(
    live: Dispatcher, receiver: Receiver, database: Path, erase: str, gone: list[str]
) -> None:
    live.register("shop", receiver.url, erase=erase)  # type: ignore[arg-type]
    receiver.answer("good", Reply(200, (), b"thanks"))
    receiver.answer("bad", Reply(404, (), b"what"))
    with live.worker():
        enqueue(live, "good", "bad")
        eventually_is(live, "bad", "dead")
    assert state(live, "good") == "delivered"
    assert erased(database) == gone
    for event_id in ("good", "bad"):
        last = ["PayloadErased"] if event_id in gone else []
        assert entries(live, event_id) == ["Enqueued", "AttemptRecorded", *last]
        assert live.status("shop", event_id)["erased"] is (event_id in gone)
    assert rows(database, "SELECT count(*) FROM dispatcher_responses") == [(2 - len(gone),)]


def test_what_was_answered_before_is_under_the_same_key(
    live: Dispatcher, receiver: Receiver, database: Path, clock: MovedClock
) -> None:
    live.register("shop", receiver.url, policy=QUICK)
    receiver.answer("one", Reply(503, (), b"later"), Reply(200, (), b"thanks"))
    enqueue(live, "one")
    with live.worker():
        eventually_is(live, "one", "pending", attempts=1)
        assert erased(database) == []
        live.update("shop", erase="on_delivery")
        clock.move(10)
        eventually_is(live, "one", "delivered")
    ((payload,),) = rows(database, "SELECT payload FROM dispatcher_responses")
    assert rows(database, f"SELECT key FROM dispatcher_payload_keys WHERE n = {payload}") == [(ERASED,)]


def test_a_lost_attempt_erases_as_any_other(
    live: Dispatcher, receiver: Receiver, database: Path, clock: MovedClock
) -> None:
    live.register("shop", receiver.url, policy=ONCE, erase="on_final")
    enqueue(live, "one")
    assert worker_elsewhere(database, clock, sends=False).ended() == -9
    clock.move(LEASE_SECONDS + 1)
    with live.worker():
        eventually_is(live, "one", "dead")
    assert erased(database) == ["one"]


def test_no_byte_of_the_key_is_left_in_the_file(protected: Dispatcher, database: Path) -> None:
    protected.register("shop", URL)
    enqueue(protected, "before", "one", "after")
    found = keys(database)
    assert found["one"] in everything(database)
    assert protected.erase("shop", ["one"]) == Erased(1)
    assert keys(database) == found | {"one": ERASED}
    protected.close()
    left = everything(database)
    assert found["one"] not in left
    assert found["one"][1:33] not in left
    assert found["before"] in left


def test_what_is_enqueued_and_erased_in_one_transaction_is_erased(
    live: Dispatcher, clock: MovedClock, database: Path
) -> None:
    from dispatcher.live.erasure import _erase
    from dispatcher.live.events import accept, prepare
    from dispatcher.log.commit import Commit

    live.register("shop", URL)
    event = prepare(live._vault, "shop", 1, event_id="one")

    def both(commit: Commit) -> Erased:
        accept(commit, live._vault, [event])
        return _erase(commit, ["default/shop/one"], None, named=True)

    assert live._do(both) == Erased(1)
    assert erased(database) == ["one"]


def test_erasing_a_pending_event_cancels_it_and_it_is_never_sent(
    live: Dispatcher, receiver: Receiver, database: Path
) -> None:
    live.register("shop", receiver.url)
    enqueue(live, "one", "two")
    assert live.erase("shop", ["one"], actor="someone") == Erased(1)
    assert entries(live, "one") == ["Enqueued", "Cancelled", "PayloadErased"]
    assert {entry["data"].get("actor") for entry in live.history("shop", "one")} == {None, "someone"}
    assert (state(live, "one"), live.status("shop", "one")["erased"]) == ("cancelled", True)
    with live.worker():
        eventually_is(live, "two", "delivered")
    assert receiver.events == ["two"]


def test_other_states_stay_and_erasing_again_comes_to_nothing(live: Dispatcher, database: Path) -> None:
    live.register("shop", URL)
    enqueue(live, "one")
    bury(live, "one")
    assert live.erase("shop", ["one", "one"]) == Erased(1)
    length = log_length(database)
    assert live.erase("shop", ["one"]) == live.erase("shop") == Erased(0)
    assert log_length(database) == length
    assert (state(live, "one"), erased(database)) == ("dead", ["one"])


def test_an_event_in_flight_is_refused_by_name_and_left_among_all(database: Path, clock: MovedClock) -> None:
    transport = Prompted()
    with Dispatcher(database, clock=clock, transport=transport, open_networks=OPEN) as live:
        live.register("shop", URL)
        enqueue(live, "sent", "waiting")
        with live.worker():
            assert transport.asked.wait(20)
            with pytest.raises(Refused) as refused:
                live.erase("shop", ["waiting", "sent"])
            assert refused.value.code == "in_flight"
            assert erased(database) == []
            assert live.erase("shop") == Erased(1, in_flight=1)
            assert erased(database) == ["waiting"]
            transport.may_answer.set()
            eventually_is(live, "sent", "delivered")
        assert live.erase("shop") == Erased(1)


def test_what_is_erased_is_neither_enqueued_again_nor_revived(live: Dispatcher) -> None:
    live.register("shop", URL)
    enqueue(live, "gone", "kept")
    bury(live, "gone", "kept")
    live.erase("shop", ["gone"])
    for call in (lambda: enqueue(live, "gone"), lambda: live.enqueue("shop", 1, event_id="gone")):
        with pytest.raises(Refused) as refused:
            call()
        assert refused.value.code == "duplicate_event"
    with pytest.raises(Refused) as refused:
        live.revive("shop", ["gone"])
    assert refused.value.code == "payload_erased"
    assert live.revive("shop") == 1
    assert (state(live, "gone"), state(live, "kept")) == ("dead", "pending")


def test_all_of_an_endpoint_are_erased_in_transactions_of_bounded_size(
    live: Dispatcher, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live.register("shop", URL)
    live.register("other", URL)
    enqueue(live, "other", endpoint_id="other")
    ids = live.enqueue_many([("shop", n) for n in range(1_200)])
    bury(live, *ids[:600])
    with transactions(monkeypatch) as sizes:
        assert live.erase("shop") == Erased(1_200)
    assert max(sizes) <= 1_000
    assert sum(sizes) == 1_200 + 600
    assert erased(database) == ids
    assert live.status("other", "other")["erased"] is False


def test_many_are_named_and_one_that_is_unknown_refuses_all(
    live: Dispatcher, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live.register("shop", URL)
    ids = live.enqueue_many([("shop", n) for n in range(600)])
    with pytest.raises(Refused) as refused:
        live.erase("shop", [*ids, "none"])
    assert refused.value.code == "unknown_event"
    assert erased(database) == []
    with transactions(monkeypatch) as sizes:
        assert live.erase("shop", ids) == Erased(600)
    assert sizes == [1_000, 200]


def test_an_erasure_that_is_stopped_goes_on_where_it_stopped(
    live: Dispatcher, opened: Opened, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live.register("shop", URL)
    ids = live.enqueue_many([("shop", n) for n in range(600)])
    step = Dispatcher._step
    with monkeypatch.context() as patch:

        def stopped(self: Dispatcher, some: list[str], actor: str | None, *, named: bool) -> Erased:
            if ids[-1] == some[-1].rpartition("/")[2]:
                raise KeyboardInterrupt
            return step(self, some, actor, named=named)

        patch.setattr(Dispatcher, "_step", stopped)
        with pytest.raises(KeyboardInterrupt):
            live.erase("shop")
    first = erased(database)
    assert 0 < len(first) < 600
    assert opened().erase("shop") == Erased(600 - len(first))
    assert erased(database) == ids


def test_those_enqueued_before_a_time_are_erased(live: Dispatcher, database: Path, clock: MovedClock) -> None:
    live.register("shop", URL)
    enqueue(live, "old")
    clock.move(60)
    enqueue(live, "young")
    bury(live, "old")
    assert live.erase("shop", older_than=clock.ms - 60_000) == Erased(0)
    assert live.erase("shop", older_than=clock.ms) == Erased(1)
    assert erased(database) == ["old"]
    assert live.erase("shop", older_than=clock.ms + 1) == Erased(1)


def test_a_whole_tenant_is_erased_and_no_other(live: Dispatcher, database: Path) -> None:
    for tenant in ("acme", "acme-2"):
        for endpoint_id in ("shop", "mail"):
            live.register(endpoint_id, URL, tenant=tenant)
            live.enqueue(endpoint_id, 1, event_id=f"{tenant}-{endpoint_id}", tenant=tenant)
    assert live.erase_tenant("acme", older_than=0) == Erased(0)
    assert live.erase_tenant("acme") == Erased(2)
    assert erased(database) == ["acme-shop", "acme-mail"]


def test_rebuilding_leaves_what_is_erased_erased_and_counts_stay(live: Dispatcher, database: Path) -> None:
    live.register("shop", URL)
    enqueue(live, "dead", "pending", "kept")
    bury(live, "dead")
    live.erase("shop", ["dead", "pending"])
    assert {wrong for _, wrong in rebuild(database).values()} == {0}
    assert erased(database) == ["dead", "pending"]
    assert live.status("shop", "dead")["erased"]
    counted = "SELECT pending, delivered, dead, cancelled FROM dispatcher_endpoints"
    assert rows(database, counted) == [(1, 0, 1, 1)]


def test_what_is_wrong_is_refused_and_erases_nothing(live: Dispatcher, database: Path) -> None:
    live.register("shop", URL)
    enqueue(live, "one")
    length = log_length(database)
    for call, code in (
        (lambda: live.erase("none"), "unknown_endpoint"),
        (lambda: live.erase("none", ["one"]), "unknown_event"),
        (lambda: live.erase("shop", ["one", "none"]), "unknown_event"),
        (lambda: live.erase("shop", ["one", "a b"]), "invalid_id"),
        (lambda: live.erase("shop", ["one"], tenant="acme"), "unknown_event"),
        (lambda: live.erase("shop", ["one"], older_than=0), "invalid_argument"),
        (lambda: live.erase("shop", older_than="now"), "invalid_argument"),  # type: ignore[arg-type]
        (lambda: live.erase("shop", older_than=-1), "invalid_argument"),
        (lambda: live.erase("shop", ["one"], actor=5), "invalid_argument"),  # type: ignore[arg-type]
        (lambda: live.erase("shop", actor=5), "invalid_argument"),  # type: ignore[arg-type]
        (lambda: live.erase_tenant("acme"), "unknown_tenant"),
        (lambda: live.erase_tenant("a/b"), "invalid_id"),
        (lambda: live.update("shop", erase="soon"), "invalid_argument"),
        (lambda: live.register("new", URL, erase="soon"), "invalid_argument"),  # type: ignore[arg-type]
    ):
        with pytest.raises(DispatcherError) as refused:
            call()
        assert refused.value.code == code
    assert log_length(database) == length
    assert erased(database) == []
