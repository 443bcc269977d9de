"""What is left of an erased payload in the database's files: nothing, once it is scrubbed."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path
from unittest.mock import patch

import pytest

from dispatcher.audit.verify import verify
from dispatcher.live import Dispatcher
from dispatcher.log import scrub as scrubbing
from dispatcher.log.conservation import conservation
from dispatcher.log.open import Database, reading
from dispatcher.log.rebuild import rebuild
from dispatcher.log.scrub import scrub
from tests.acceptance.elsewhere import Elsewhere, _die
from tests.acceptance.lively import (
    OPEN,
    MovedClock,
    enqueue,
    eventually,
    eventually_is,
    log_length,
    rows,
)
from tests.acceptance.receiver import Receiver, Reply
from tests.acceptance.test_live_erasure import ONCE, URL, keys
from tests.acceptance.test_live_erasure_crashes import Answering
from tests.acceptance.test_live_secrets import everything

MARKER = "PII-7f3a@example.org"


def unscrubbed(database: Path) -> int:
    return int(rows(database, "SELECT count(*) FROM dispatcher_unscrubbed")[0][0])


def counts(database: Path) -> dict[str, dict[str, int]]:
    with reading(database) as connection:
        found = conservation(connection)
    return {name: dict(counted) for name, counted in found.items()}


def test_nothing_of_an_erased_payload_is_left_once_it_is_scrubbed(
    live: Dispatcher, receiver: Receiver, database: Path, clock: MovedClock
) -> None:
    live.register("shop", f"{receiver.url}?mail={MARKER}", policy=ONCE)
    receiver.answer("good", Reply(200, (), MARKER.encode()))
    receiver.answer("bad", Reply(404, (), MARKER.encode()))
    for event_id in ("good", "bad"):
        live.enqueue("shop", {"mail": MARKER}, event_id=event_id, headers=[("X-Mail", MARKER)])
    found = keys(database)
    with closing(sqlite3.connect(database, isolation_level=None)) as reader:
        with live.worker():
            eventually_is(live, "bad", "dead")
            eventually_is(live, "good", "delivered")
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM dispatcher_log").fetchone()
            before = counts(database)
            live.erase("shop")
            assert live.status("shop", "good")["scrubbed"] is False
            clock.move(10)
        assert live.status("shop", "good")["scrubbed"] is False, "somebody still reads"
        assert found["good"][1:33] in everything(database)
        reader.execute("COMMIT")
    with live.worker():
        eventually(lambda: live.status("shop", "good")["scrubbed"] and live.status("shop", "bad")["scrubbed"])
    left = everything(database)
    assert MARKER.encode() not in left
    assert all(key[1:33] not in left for key in found.values())
    assert counts(database) == before
    rebuild(database)
    assert verify(database).findings == []


def test_many_keys_leave_no_copy_in_the_pages_they_were_moved_from(live: Dispatcher, database: Path) -> None:
    live.register("shop", URL)
    live.enqueue_many([("shop", {"n": n}) for n in range(500)])
    found = keys(database)
    live.erase("shop")
    assert scrub(live._database, 1)
    left = everything(database)
    assert [event_id for event_id, key in found.items() if key[1:33] in left] == []


def test_a_key_that_was_not_erased_is_told_neither_way(live: Dispatcher) -> None:
    live.register("shop", URL)
    enqueue(live, "kept")
    assert "scrubbed" not in live.status("shop", "kept")


def test_with_nothing_to_do_a_round_writes_nothing_and_makes_no_checkpoint(
    live: Dispatcher, database: Path, clock: MovedClock
) -> None:
    live.register("shop", URL, keep_payloads=1)
    enqueue(live, "one")
    rounds = []
    worker_round = scrubbing.unscrubbed

    def counted(connection: object) -> list[int]:
        rounds.append(clock.ms)
        return worker_round(connection)  # type: ignore[arg-type]

    live.disable("shop")
    length = log_length(database)
    with (
        patch("dispatcher.worker.housekeeping.unscrubbed", counted),
        patch.object(Database, "empty_wal", side_effect=AssertionError("a checkpoint")),
        live.worker(),
    ):
        eventually(lambda: len(rounds) == 1)
        clock.move(10)
        eventually(lambda: len(rounds) == 2)
    assert log_length(database) == length
    assert rows(database, "SELECT count(*) FROM dispatcher_retention") == [(0,)]


def test_what_goes_wrong_in_housekeeping_stops_no_delivery(
    live: Dispatcher, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    live.register("shop", receiver.url)
    with patch("dispatcher.log.retention.due", side_effect=RuntimeError("oh")), live.worker():
        eventually(lambda: "housekeeping failed" in caplog.text)
        enqueue(live, "one")
        eventually_is(live, "one", "delivered")


def _scrub_and_die(database: Path, clock: MovedClock, at: str, line: Connection) -> None:
    empty = Database.empty_wal

    def emptied(self: Database, wait: float) -> bool:
        if at == "after the checkpoint":
            empty(self, wait)
        _die()

    with (
        patch.object(Database, "empty_wal", emptied),
        Dispatcher(database, clock=clock, open_networks=OPEN, transport=Answering()) as live,
        live.worker(),
    ):
        live.erase("shop", ["one"])
        clock.move(10)
        line.recv()


@pytest.mark.parametrize("at", ["before the checkpoint", "after the checkpoint"])
def test_killed_while_it_scrubs_the_next_one_finishes(
    live: Dispatcher, database: Path, clock: MovedClock, at: str
) -> None:
    live.register("shop", URL)
    live.disable("shop")
    enqueue(live, "one")
    key = keys(database)["one"]
    Elsewhere(_scrub_and_die, database, clock, at).ended()
    assert live.status("shop", "one")["erased"]
    assert live.status("shop", "one")["scrubbed"] is False
    with live.worker():
        eventually(lambda: live.status("shop", "one")["scrubbed"])
    assert key[1:33] not in everything(database)
    assert unscrubbed(database) == 0


def test_verify_finds_an_erased_payload_with_a_key_and_another_without(
    live: Dispatcher, database: Path
) -> None:
    live.register("shop", URL)
    enqueue(live, "gone", "kept")
    live.erase("shop", ["gone"])
    assert verify(database).findings == []
    copy = database.parent / "copy.db"
    rows(database, f"VACUUM INTO '{copy}'")
    with closing(sqlite3.connect(copy)) as connection, connection:
        connection.execute("UPDATE dispatcher_payload_keys SET key = randomblob(length(key)) WHERE n = 3")
        connection.execute("UPDATE dispatcher_payload_keys SET key = zeroblob(length(key)) WHERE n = 4")
    assert [tuple(finding) for finding in verify(copy).findings] == [
        (3, "the payload is erased, but its key is still there"),
        (4, "the payload is not erased, but its key is"),
    ]
