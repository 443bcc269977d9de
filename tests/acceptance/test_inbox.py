"""Events that are accepted within an application's own transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from dispatcher.errors import DatabaseBusy, Refused
from dispatcher.live import Dispatcher
from dispatcher.live.inbox import TAKEN_AT_ONCE
from dispatcher.log.open import Database
from dispatcher.log.scrub import scrub
from tests.acceptance.applications import KINDS, Application, _sqlite3, orders
from tests.acceptance.lively import entries, eventually, eventually_is, locked, rows, state
from tests.acceptance.receiver import Receiver
from tests.acceptance.test_live_secrets import everything


@pytest.fixture
def shop(live: Dispatcher, receiver: Receiver, database: Path) -> Dispatcher:
    """A dispatcher in whose database an application keeps its orders."""
    live.register("shop", receiver.url)
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE TABLE orders (n INTEGER PRIMARY KEY)")
    return live


@pytest.fixture(params=KINDS)
def application(request: pytest.FixtureRequest, shop: Dispatcher, database: Path) -> Iterator[Application]:
    with KINDS[request.param](database) as application:
        yield application


@pytest.fixture
def plain(shop: Dispatcher, database: Path) -> Iterator[Application]:
    with _sqlite3(database) as application:
        yield application


def refused(live: Dispatcher) -> list[tuple[str, str | None]]:
    return [(event["event_id"], event["refused"]) for event in live.inbox()]


def kept(database: Path) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of all the dispatcher's tables."""
    tables = rows(
        database, "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'dispatcher_%'"
    )
    return {name: rows(database, f"SELECT * FROM {name}") for (name,) in tables}


def test_it_is_delivered_if_the_transaction_commits(
    shop: Dispatcher, application: Application, receiver: Receiver, database: Path
) -> None:
    with shop.worker():
        application.order(1)
        event_id = shop.enqueue("shop", {"order": 1}, connection=application.connection)
        receiver.assert_quiet()
        assert orders(database) == []
        application.commit()
        arrival = receiver.next()
    assert (arrival.event, arrival.body) == (event_id, b'{"order":1}')
    assert orders(database) == [1]
    assert shop.inbox() == []


def test_rolled_back_it_leaves_nothing(
    shop: Dispatcher, application: Application, receiver: Receiver, database: Path
) -> None:
    before = kept(database)
    application.order(1)
    shop.enqueue("shop", {"order": 1}, connection=application.connection)
    application.rollback()
    assert kept(database) == before
    assert orders(database) == []
    shop.enqueue("shop", "after", event_id="after")
    with shop.worker():
        assert receiver.next().event == "after"
    receiver.assert_quiet()


def test_without_a_row_of_the_applications_own_it_begins_the_transaction(
    shop: Dispatcher, application: Application, database: Path
) -> None:
    if (
        "by hand" in str(type(application.connection))
        or getattr(application.connection, "isolation_level", "") is None
    ):
        application.connection.execute("BEGIN")
    shop.enqueue("shop", 1, event_id="one", connection=application.connection)
    assert rows(database, "SELECT * FROM dispatcher_inbox") == []
    application.commit()
    assert state(shop, "one") == "accepted"


def test_until_it_is_in_the_log_its_status_is_accepted(shop: Dispatcher, plain: Application) -> None:
    shop.enqueue("shop", 1, event_id="one", connection=plain.connection)
    plain.commit()
    status = shop.status("shop", "one")
    assert (status["state"], status["attempts"], status["next_attempt_at"]) == ("accepted", 0, None)
    assert status.keys() > shop.status("shop", shop.enqueue("shop", 2)).keys()
    assert state(shop, "one") == "pending"
    assert entries(shop, "one") == ["Enqueued"]


def test_it_comes_in_the_order_of_acceptance_and_before_what_is_written_next(
    shop: Dispatcher, plain: Application, receiver: Receiver
) -> None:
    for event_id in ("one", "two", "three"):
        shop.enqueue("shop", 1, event_id=event_id, connection=plain.connection)
    plain.commit()
    shop.enqueue("shop", 1, event_id="four")
    with shop.worker():
        assert [arrival.event for arrival in receiver.take(4)] == ["one", "two", "three", "four"]


def test_a_worker_that_idles_takes_it_by_itself(
    shop: Dispatcher, plain: Application, receiver: Receiver
) -> None:
    with shop.worker():
        shop.enqueue("shop", 1, event_id="first")
        eventually_is(shop, "first", "delivered")
        receiver.next()
        shop.enqueue("shop", 1, event_id="one", connection=plain.connection)
        plain.commit()
        assert receiver.next().event == "one"


def test_many_are_taken_in_transactions_of_bounded_size(
    shop: Dispatcher, plain: Application, database: Path
) -> None:
    ids = [f"evt-{n}" for n in range(2 * TAKEN_AT_ONCE + 1)]
    for event_id in ids:
        shop.enqueue("shop", 1, event_id=event_id, connection=plain.connection)
    plain.commit()
    positions = [2]
    shop._committer.listeners.append(positions.append)
    shop.enqueue("shop", 1, event_id="last")
    assert [after - before for before, after in pairwise(positions)] == [TAKEN_AT_ONCE, TAKEN_AT_ONCE, 2]
    taken = rows(database, "SELECT delivery_id FROM dispatcher_deliveries ORDER BY position")
    assert [delivery_id.rpartition("/")[2] for (delivery_id,) in taken] == [*ids, "last"]


def test_the_order_key_type_and_actor_go_with_it(
    shop: Dispatcher, plain: Application, receiver: Receiver
) -> None:
    for event_id in ("here", "inbox"):
        on = {"connection": plain.connection} if event_id == "inbox" else {}
        shop.enqueue("shop", 1, event_id=event_id, order_key="k", actor="clerk", headers=[("X-A", "b")], **on)
    plain.commit()
    shop.enqueue("shop", 1)
    here, there = (shop.history("shop", event_id)[0]["data"] for event_id in ("here", "inbox"))
    seeds = here.pop("seed"), there.pop("seed")
    assert here.pop("digest") != there.pop("digest"), "they are under the payloads' own keys"
    assert here == there
    assert len(set(seeds)) == 2
    with shop.worker():
        told = {arrival.event: arrival.headers.get("x-a") for arrival in receiver.take(3)}
    assert (told["here"], told["inbox"]) == ("b", "b")


def test_a_repeat_of_the_same_content_is_the_same_event(
    shop: Dispatcher, plain: Application, receiver: Receiver
) -> None:
    shop.enqueue("shop", 1, event_id="one")
    for _ in range(3):
        assert shop.enqueue("shop", 1, event_id="one", connection=plain.connection) == "one"
    plain.commit()
    with shop.worker():
        eventually_is(shop, "one", "delivered")
    assert receiver.events == ["one"]
    assert shop.inbox() == []


def test_other_content_under_a_known_id_is_kept_with_the_reason(
    shop: Dispatcher, plain: Application, receiver: Receiver
) -> None:
    shop.enqueue("shop", 1, event_id="one", connection=plain.connection)
    shop.enqueue("shop", 2, event_id="one", connection=plain.connection)
    plain.commit()
    with shop.worker():
        assert receiver.next().body == b"1"
        eventually(lambda: refused(shop) == [("one", "duplicate_event")])
    assert state(shop, "one") == "delivered"


def test_what_was_erased_cannot_be_accepted_again(
    shop: Dispatcher, plain: Application, receiver: Receiver
) -> None:
    shop.enqueue("shop", 1, event_id="one")
    shop.erase("shop", ["one"])
    shop.enqueue("shop", 1, event_id="one", connection=plain.connection)
    plain.commit()
    shop.enqueue("shop", 2)
    assert refused(shop) == [("one", "duplicate_event")]


def test_what_is_refused_is_tried_again_when_it_is_told_to(
    shop: Dispatcher, plain: Application, receiver: Receiver
) -> None:
    shop.update("shop", order="none")
    shop.enqueue("shop", 1, event_id="one", order_key="k", connection=plain.connection)
    shop.enqueue("shop", 1, event_id="two", order_key="k", connection=plain.connection)
    plain.commit()
    assert shop.retry_refused() == 0, "they wait, and were refused only now"
    assert refused(shop) == [("one", "order_key_refused"), ("two", "order_key_refused")]
    found = shop.status("shop", "one")
    assert (found["state"], found["refused"]) == ("refused", "order_key_refused")
    assert shop.retry_refused() == 0
    shop.update("shop", order="strict")
    assert refused(shop) == [("one", "order_key_refused"), ("two", "order_key_refused")]
    number = shop.inbox()[1]["number"]
    assert shop.retry_refused([number]) == 1
    assert (state(shop, "one"), state(shop, "two")) == ("refused", "pending")
    assert shop.retry_refused() == 1
    with shop.worker():
        assert [arrival.event for arrival in receiver.take(2)] == ["two", "one"]


def test_what_is_refused_can_be_given_up_and_then_nobody_can_read_it(
    shop: Dispatcher, plain: Application, database: Path
) -> None:
    for n in range(3):
        shop.enqueue("shop", n, event_id="one", connection=plain.connection)
    plain.commit()
    shop.enqueue("shop", 1)
    first, second = (event["number"] for event in shop.inbox())
    keys = rows(database, "SELECT key FROM dispatcher_inbox_keys ORDER BY n")
    assert keys[0] == (bytes(69),), "it is where the payload is now"
    assert shop.drop_refused([first]) == 1
    assert rows(database, "SELECT key FROM dispatcher_inbox_keys ORDER BY n") == [(bytes(69),)] * 2 + keys[2:]
    assert shop.drop_refused() == 1
    assert rows(database, "SELECT * FROM dispatcher_inbox_keys") == []
    with pytest.raises(Refused) as missing:
        shop.drop_refused([second])
    assert (missing.value.code, missing.value.exit_code) == ("unknown_refusal", 3)


def test_retrying_one_that_is_not_there_changes_nothing(shop: Dispatcher, plain: Application) -> None:
    shop.update("shop", order="none")
    shop.enqueue("shop", 1, event_id="one", order_key="k", connection=plain.connection)
    plain.commit()
    shop.update("shop", order="strict")
    number = shop.inbox()[0]["number"]
    with pytest.raises(Refused, match="no refused event"):
        shop.retry_refused([number, number + 1])
    assert refused(shop) == [("one", "order_key_refused")]


def test_a_damaged_one_is_refused_and_others_go_on(
    shop: Dispatcher, plain: Application, receiver: Receiver, database: Path
) -> None:
    shop.enqueue("shop", 1, event_id="one")
    for event_id in ("one", "two"):
        shop.enqueue("shop", 1, event_id=event_id, connection=plain.connection)
    plain.commit()
    plain.connection.execute("UPDATE dispatcher_inbox SET sealed = x'00' WHERE event_id = 'one'")
    plain.commit()
    with shop.worker():
        assert [arrival.event for arrival in receiver.take(2)] == ["one", "two"]
    assert refused(shop) == [("one", "vault_damaged")]


def test_an_endpoint_that_is_not_there_is_refused_at_once(
    shop: Dispatcher, application: Application, database: Path
) -> None:
    before = kept(database)
    application.order(1)
    with pytest.raises(Refused) as unknown:
        shop.enqueue("other", 1, connection=application.connection)
    assert unknown.value.code == "unknown_endpoint"
    application.order(2)
    application.commit()
    assert orders(database) == [1, 2], "the transaction goes on"
    assert kept(database) == before


def test_what_can_never_be_accepted_is_refused_before_the_connection_is_used(
    shop: Dispatcher, plain: Application
) -> None:
    for wrong in ({"payload": float("nan")}, {"event_id": "a b"}, {"headers": [("Host", "x")]}):
        with pytest.raises(Refused if "headers" not in wrong else Exception):
            shop.enqueue("shop", wrong.pop("payload", 1), connection=plain.connection, **wrong)
    assert not plain.connection.in_transaction


def test_nothing_is_read_before_it_writes_so_that_it_waits_for_other_writers(
    shop: Dispatcher, plain: Application
) -> None:
    """A transaction that has read cannot write any more once another one has written."""
    said: list[str] = []
    plain.connection.set_trace_callback(said.append)
    shop.enqueue("shop", 1, connection=plain.connection)
    plain.commit()
    assert [statement.split(" ")[0] for statement in said] == [
        "PRAGMA",
        "BEGIN",
        "INSERT",
        "INSERT",
        "COMMIT",
    ]
    assert said[0] == "PRAGMA database_list"


def test_locked_out_it_says_what_to_do_and_the_transaction_can_be_run_again(
    shop: Dispatcher, database: Path
) -> None:
    with closing(sqlite3.connect(database, timeout=0)) as connection:
        with locked(database), pytest.raises(DatabaseBusy) as busy:
            shop.enqueue("shop", 1, event_id="one", connection=connection)
        assert "BEGIN IMMEDIATE" in busy.value.remedy
        connection.rollback()
        shop.enqueue("shop", 1, event_id="one", connection=connection)
        connection.commit()
    assert state(shop, "one") == "accepted"


def test_no_key_and_no_payload_is_in_the_file_in_the_clear(
    shop: Dispatcher, plain: Application, database: Path
) -> None:
    shop.enqueue("shop", "the marker", headers=[("X-A", "other marker")], connection=plain.connection)
    plain.commit()
    shop.close()
    plain.connection.close()
    assert b"marker" not in everything(database)


def test_what_is_erased_of_an_endpoint_or_a_tenant_is_so_in_the_inbox_too(
    shop: Dispatcher, plain: Application, database: Path
) -> None:
    shop.register("other", "http://127.0.0.1:1/")
    for endpoint_id in ("shop", "other"):
        shop.enqueue(endpoint_id, 1, event_id="known")
    for endpoint_id in ("shop", "other"):
        shop.enqueue(endpoint_id, 2, event_id="known", connection=plain.connection)
        shop.enqueue(endpoint_id, 2, event_id="waits", connection=plain.connection)
    shop.publish("a.type", 2, event_id="known", connection=plain.connection)
    plain.commit()
    assert shop.erase("shop").erased == 3, "one that waited, too"
    assert shop.status("shop", "waits")["erased"]
    assert [(event["endpoint_id"], event["refused"]) for event in shop.inbox()] == [
        ("other", "duplicate_event"),
        (None, "duplicate_event"),
    ]
    assert shop.erase_tenant("default").erased == 4
    assert shop.inbox() == []
    assert rows(database, "SELECT count(*) FROM dispatcher_inbox_keys") == [(0,)]


@pytest.mark.parametrize("secure", [0, 1])
def test_once_erased_and_scrubbed_no_byte_of_a_key_that_came_through_the_inbox_is_left(
    shop: Dispatcher, database: Path, secure: int
) -> None:
    """However the application's own connection deletes; and so many that the table has to grow."""
    count = 300
    with _sqlite3(database) as application:
        application.connection.execute(f"PRAGMA secure_delete = {secure}")
        for n in range(count):
            shop.enqueue("shop", n, event_id=f"evt-{n}", connection=application.connection)
            if n % 50 == 0:
                application.commit()
        application.commit()
    keys = [key for (key,) in rows(database, "SELECT key FROM dispatcher_inbox_keys")]
    assert len(keys) == count
    assert shop.erase("shop").erased == count
    shop.close()
    with Database(database, "write") as opened:
        assert scrub(opened, 5)
        left = everything(database)
    assert [n for n, key in enumerate(keys) if key[1:33] in left] == []
