"""Events that are published within an application's own transaction."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from dispatcher.live import Dispatcher
from dispatcher.live import inbox as live_inbox
from tests.acceptance.conftest import Command
from tests.acceptance.lively import OPEN, MovedClock, eventually, log_length, rows
from tests.acceptance.receiver import Receiver

Connection = sqlite3.Connection


@pytest.fixture
def connection(live: Dispatcher, receiver: Receiver, database: Path) -> Iterator[Connection]:
    """An application's; three endpoints, of which two take invoices."""
    live.register("books", receiver.url, types=["invoice.*"])
    live.register("shop", receiver.url, types=["order.placed"])
    live.register("audit", receiver.url)
    with closing(sqlite3.connect(database, timeout=20)) as connection:
        yield connection


def where(live: Dispatcher, event_id: str) -> list[str]:
    """The endpoints that have an event."""
    live.enqueue("shop", 1)  # whoever writes takes along what waits
    found = rows(
        Path(live._file),
        f"SELECT endpoint_id FROM dispatcher_deliveries WHERE delivery_id LIKE '%/{event_id}'",
    )
    return [endpoint_id.partition("/")[2] for (endpoint_id,) in found]


def test_it_goes_to_whoever_wants_it_if_the_transaction_commits(
    live: Dispatcher, connection: Connection, receiver: Receiver
) -> None:
    published = live.publish("invoice.paid", {"n": 1}, event_id="one", connection=connection)
    assert published == ("one", None)
    assert live.inbox() == []
    connection.commit()
    assert [(event["event_id"], event["endpoint_id"]) for event in live.inbox()] == [("one", None)]
    with live.worker():
        arrived = receiver.take(2)
    receiver.assert_quiet()
    assert [(arrival.event, arrival.body) for arrival in arrived] == [("one", b'{"n":1}')] * 2
    assert where(live, "one") == ["books", "audit"]
    assert live.inbox() == []


def test_rolled_back_it_leaves_nothing(live: Dispatcher, connection: Connection, database: Path) -> None:
    before = log_length(database)
    live.publish("invoice.paid", 1, event_id="one", connection=connection)
    connection.rollback()
    assert rows(database, "SELECT * FROM dispatcher_inbox_keys") == []
    live.publish("nobody.wants", 1, tenant="other")
    assert log_length(database) == before


def test_until_it_is_in_the_log_its_status_is_accepted_wherever_it_may_go(
    live: Dispatcher, connection: Connection, command: Command
) -> None:
    live.publish("invoice.paid", 1, event_id="one", connection=connection)
    connection.commit()
    for endpoint_id in ("books", "audit"):
        assert live.status(endpoint_id, "one")["state"] == "accepted"
    told = dict(command("status", "one").lines)
    assert (told["state"], told["endpoint"]) == ("accepted", "not yet chosen")
    assert command("inbox").lines[0][2:5] == ["", "one", "invoice.paid"]


def test_whoever_wants_it_is_found_out_once_it_has_committed(
    live: Dispatcher, connection: Connection
) -> None:
    live.publish("invoice.paid", 1, event_id="one", connection=connection)
    connection.commit()
    # This is done after what was waiting, which went to who was there then.
    live.update("shop", types=None)
    assert where(live, "one") == ["books", "audit"]
    live.publish("invoice.paid", 1, event_id="two", connection=connection)
    connection.commit()
    assert where(live, "two") == ["books", "shop", "audit"]


def test_nobody_wants_it_and_nothing_is_kept(live: Dispatcher, database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection:
        live.publish("invoice.paid", 1, connection=connection)
        connection.commit()
    live.register("late", "http://127.0.0.1:1/")
    assert log_length(database) == 2
    assert live.inbox() == []
    assert rows(database, "SELECT * FROM dispatcher_inbox_keys") == []


def test_its_envelope_tells_who_published_it_and_when(
    connection: Connection, live: Dispatcher, receiver: Receiver, database: Path, clock: MovedClock
) -> None:
    """Not who took it into the log, and when."""
    live.update("books", body_format="cloudevents")
    live.update("audit", body_format="standard")
    with Dispatcher(database, clock=clock, open_networks=OPEN, source="/the/shop") as application:
        application.publish("invoice.paid", {"n": 1}, event_id="one", connection=connection)
        connection.commit()
    clock.move(3600)
    with live.worker():
        bodies = [json.loads(arrival.body) for arrival in receiver.take(2)]
    (cloud,) = (body for body in bodies if "source" in body)
    (standard,) = (body for body in bodies if "source" not in body)
    assert (cloud["source"], cloud["id"], cloud["data"]) == ("/the/shop", "one", {"n": 1})
    assert standard == {"type": "invoice.paid", "timestamp": cloud["time"], "data": {"n": 1}}
    log = rows(database, "SELECT ts FROM dispatcher_log WHERE type = 'Enqueued'")
    assert {ts // 1000 for (ts,) in log} == {clock.ms // 1000}
    at = datetime.fromisoformat(cloud["time"]).timestamp()
    assert round(clock.ms / 1000 - at) == 3600


@pytest.mark.parametrize(
    ("payload", "options", "reason"),
    [(b"no json", {}, "payload_not_json"), ({"other": 1}, {"event_id": "known"}, "duplicate_event")],
)
def test_what_turns_out_to_be_wrong_is_kept_with_the_reason_and_goes_to_nobody(
    live: Dispatcher,
    connection: Connection,
    payload: Any,
    options: dict[str, Any],
    reason: str,
    database: Path,
) -> None:
    live.publish("invoice.paid", 1, event_id="known")
    live.update("audit", body_format="standard")
    before = log_length(database)
    event_id = live.publish("invoice.paid", payload, **options, connection=connection).event_id
    connection.commit()
    live.enqueue("shop", 1)
    assert [(event["event_id"], event["refused"]) for event in live.inbox()] == [(event_id, reason)]
    assert log_length(database) == before + 1
    if reason == "payload_not_json":
        live.update("audit", body_format=None)
        assert live.retry_refused() == 1
        assert where(live, event_id) == ["books", "audit"]
        assert live.inbox() == []


def test_a_repeat_is_the_same_event(live: Dispatcher, connection: Connection, receiver: Receiver) -> None:
    for on in (None, connection, connection):
        live.publish("invoice.paid", 1, event_id="one", connection=on)
    connection.commit()
    with live.worker():
        receiver.take(2)
        eventually(lambda: live.inbox() == [])
    receiver.assert_quiet()


def test_what_is_published_keeps_its_place_among_what_is_enqueued(
    live: Dispatcher, connection: Connection, receiver: Receiver
) -> None:
    live.enqueue("books", 1, event_id="one", connection=connection)
    live.publish("invoice.paid", 1, event_id="two", connection=connection)
    live.enqueue("books", 1, event_id="three", connection=connection)
    connection.commit()
    live.disable("audit")
    with live.worker():
        assert [arrival.event for arrival in receiver.take(3)] == ["one", "two", "three"]


def test_transactions_are_of_bounded_size_and_never_part_one_event(
    live: Dispatcher, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_inbox, "MOST_ENTRIES", 3)
    for n in range(5):
        live.publish("invoice.paid", 1, event_id=f"evt-{n}", connection=connection)
    connection.commit()
    positions = [4]
    live._committer.listeners.append(positions.append)
    live.enqueue("shop", 1)
    assert [after - before for before, after in pairwise(positions)] == [4, 4, 3]


def test_asyncio_it_is_accepted_if_the_transaction_commits(
    live: Dispatcher, connection: Connection, database: Path
) -> None:
    async def publish() -> None:
        engine = create_async_engine(f"sqlite+aiosqlite:///{database}")
        for commit in (True, False):
            async with AsyncSession(engine) as session:
                await session.execute(text("CREATE TABLE IF NOT EXISTS orders (n)"))
                await live.apublish("invoice.paid", 1, event_id=f"{commit}", connection=session)
                await (session.commit() if commit else session.rollback())
        await engine.dispose()

    asyncio.run(publish())
    assert [event["event_id"] for event in live.inbox()] == ["True"]
