"""Processes that are killed while they erase: each erasure is done wholly or not at all."""

from __future__ import annotations

import sqlite3
from multiprocessing.connection import Connection
from pathlib import Path
from unittest.mock import patch

import pytest

from dispatcher.delivery.transport import Answer, Request
from dispatcher.live import Dispatcher
from dispatcher.log.open import Database
from tests.acceptance.elsewhere import Elsewhere, _die
from tests.acceptance.lively import OPEN, MovedClock, enqueue, eventually, rows, state
from tests.acceptance.test_live_erasure import ONCE, URL, erased


class Answering:
    """A transport that answers at once."""

    async def send(self, request: Request) -> Answer:
        return Answer(status=200, body=b"thanks")

    async def close(self) -> None:
        """There is nothing to let go of."""


def _erase_and_die(database: Path, clock: MovedClock, by: str, number: int, line: Connection) -> None:
    """Erase by a command or by delivering, and die before the nth statement, or (-1) after a commit."""
    armed, count = False, 0

    def executing(text: str) -> None:
        nonlocal count
        if armed and not text.startswith("PRAGMA"):
            if count == number:
                _die()
            count += 1

    connect = Database._connect

    def traced(self: Database) -> sqlite3.Connection:
        connection = connect(self)
        connection.set_trace_callback(executing)
        return connection

    with (
        patch.object(Database, "_connect", traced),
        Dispatcher(database, clock=clock, open_networks=OPEN, transport=Answering()) as live,
    ):
        if number == -1:
            live._committer.listeners.append(lambda position: _die())
        armed = True
        if by == "command":
            live.erase(f"shop{number}", [f"one{number}", f"two{number}"])
        else:
            with live.worker():
                eventually(lambda: state(live, f"two{number}", f"shop{number}") == "delivered")
        armed = False
    line.send("survived")


@pytest.mark.parametrize("by", ["command", "worker"])
def test_killed_at_any_statement_the_log_and_the_keys_agree(
    live: Dispatcher, database: Path, clock: MovedClock, by: str
) -> None:
    """Each life erases at an endpoint of its own, and gets one statement further."""
    seen = set()
    survived = False
    for number in range(-1, 400, 1 if by == "command" else 3):
        live.register(f"shop{number}", URL, policy=ONCE, erase="on_final")
        enqueue(live, f"one{number}", f"two{number}", endpoint_id=f"shop{number}")
        process = Elsewhere(_erase_and_die, database, clock, by, number)
        survived = bool(process.rest())
        process.ended()
        gone = erased(database)
        final = rows(database, "SELECT delivery_id FROM dispatcher_deliveries WHERE state <> 'pending'")
        assert sorted(i.rpartition("/")[2] for (i,) in final) == sorted(gone), "one without the other"
        seen.add(sum(1 for event_id in gone if event_id in (f"one{number}", f"two{number}")))
        if survived:
            break
    assert survived
    assert seen >= {0, 2}
    assert rows(database, "SELECT count(*) FROM dispatcher_responses") == [(0,)]
